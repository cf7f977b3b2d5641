"""The route /v1/score: log-probabilities of texts and translations by any model."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import pytest
from scripted_server import asked
from served_models import served_models
from tiny_language_model import write_tiny_language_model
from tiny_model import write_tiny_model
from tiny_predictor import HEADS, tokenizers, write_predictor

from dragoman import LanguageModel, Predictor, Translator
from dragoman.addons.serving.service.service import Service
from dragoman.text.tokenizers import Tokenizers


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    write_tiny_language_model(folder / "lm")
    write_tiny_model(folder / "ende")
    write_predictor(folder / "requests", "requests")
    text = tokenizers()
    masking = Tokenizers(text.source.with_tags(["mask"]), text.target.with_tags(["mask"]))
    head = {"masked": {"kind": "masked_language_model"}}
    with patch("tiny_predictor.tokenizers", return_value=masking), patch.dict(HEADS, head):
        write_predictor(folder / "masked", "masked")
    return {name: folder / name for name in ("lm", "ende", "requests", "masked")}


@pytest.fixture(scope="module")
def limited(folders: dict[str, Path]) -> Iterator[Service]:
    with served_models(folders, limits={"texts": 2, "characters": 100}) as service:
        yield service


def scored(service: Service, **body: Any) -> httpx.Response:
    return asked(service, lambda client: client.post("/v1/score", json=body))  # type: ignore[no-any-return]


def test_scores_equal_those_of_the_models(folders: dict[str, Path]) -> None:
    texts, pairs = ["a dog", "", "Two dogs sleep."], [("a dog", "ein Hund"), ("A cat.", "")]
    as_json = [{"text": text, "translation": translation} for text, translation in pairs]
    with served_models(folders) as service:
        written = scored(service, text=texts, model="lm").json()
        masked = scored(service, text="a", model="masked").json()
        translated = scored(service, text=as_json, target="de").json()
        named = scored(service, text=as_json, model="ende", source="en", target="de-DE").json()
    expected = [each.as_json() for each in LanguageModel.load(folders["lm"], "cpu").score(texts)]
    for one, other in zip(written["scores"], expected, strict=True):
        assert one == pytest.approx(other, rel=1e-4)
    assert written["model"] == "lm"
    (pseudo,) = Predictor.load(folders["masked"], "cpu").score(["a"])
    assert masked["scores"][0]["log_probability"] == pytest.approx(pseudo.log_probability, abs=1e-4)
    theirs = Translator.load(folders["ende"], "cpu").score(*map(list, zip(*pairs, strict=True)))
    assert translated["model"] == "ende" and translated == named
    for score, reference in zip(translated["scores"], theirs, strict=True):
        assert score["log_probability"] == pytest.approx(reference.log_probability, abs=1e-4)
        assert (score["tokens"], score["unknown"]) == (reference.tokens, reference.unknown)


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ({"text": "a"}, 400, "name one of ende, requests, masked, lm"),
        ({"text": "a", "model": "none"}, 404, "no model of this name"),
        ({"text": "a", "target": "fr"}, 404, "no model translates into fr"),
        ({"text": "a", "target": "de", "source": "fr"}, 404, "no model translates"),
        ({"text": "a", "model": "ende"}, 400, "scores pairs {text, translation}"),
        ({"text": {"text": "a", "translation": "b"}, "model": "lm"}, 400, "scores texts, not pairs"),
        ({"text": "a", "model": "requests"}, 400, "it cannot score texts"),
        ({"text": {"text": "a"}, "model": "ende"}, 400, "Invalid request"),
        ({"text": ["a"] * 3, "model": "lm"}, 400, "3 texts, but a list has at most 2"),
        ({"text": {"text": "a" * 60, "translation": "b" * 60}, "model": "ende"}, 400, "120 characters"),
        ({"model": "lm"}, 400, "text"),
    ],
)
def test_invalid_requests_are_explained(limited: Service, body: dict[str, Any], status: int, reason: str) -> None:
    answer = scored(limited, **body)
    assert answer.status_code == status and reason in answer.json()["error"], answer.text
