"""A word aligner with its own kind of model: loaded, aligning, served with a translator, and inspected beside one."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from scripted_server import posted, served
from tiny_model import write_tiny_model
from torch import nn

import dragoman
from dragoman.base.errors import ConfigError, ModelError
from dragoman.checkpoint.folder import read_config, write_model_folder
from dragoman.checkpoint.meta import Meta
from dragoman.cli.main import main
from dragoman.engines.engine import Row
from dragoman.models.kinds.registry import KINDS, ModelKind
from dragoman.models.settings import ModelSettings
from dragoman.statistical.alignment.links import Alignment
from dragoman.text.tokenizers import VocabularySizes

WORDS = {"a": "EIN", "dog": "HUND", "runs": "RENNT"}


class DictionaryConfig(ModelSettings):
    kind: Literal["dictionary"] = "dictionary"
    words: dict[str, str]

    def build_for(self, sizes: VocabularySizes) -> nn.Module:
        return nn.Module()


class DictionaryAligner:
    """Links each target word to the first source word that the dictionary translates it from."""

    def __init__(self, folder: Path) -> None:
        self.kind, self.words = KIND, read_config(folder)["model"]["words"]

    def align(self, sources: Sequence[str], targets: Sequence[str], batch_size: int = 64) -> list[Alignment]:
        return [self.links(source.split(), target.split()) for source, target in zip(sources, targets, strict=True)]

    def links(self, source: list[str], target: list[str]) -> Alignment:
        known = [self.words.get(word) for word in source]
        return tuple(sorted((known.index(word), j) for j, word in enumerate(target) if word in known))

    def settings(self) -> dict[str, Any]:
        return dict(self.words)


KIND = ModelKind(
    "dictionary",
    DictionaryConfig,
    "dictionary",
    ("source", "target"),
    "aligns the words of",
    frozenset({"align"}),
    "`dragoman align --model`",
    DictionaryAligner,
    tokenizers=False,
    has_updates=False,
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(KINDS, KIND.name, KIND)
    parameters = {"unused": torch.zeros(1)}
    settings = json.dumps({"model": {"kind": "dictionary", "words": WORDS}})
    write_model_folder(tmp_path / "dictionary", parameters, settings, None, Meta(step=0))
    return tmp_path / "dictionary"


def test_it_is_loaded_and_aligns(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dragoman.load(folder).align(["a dog", ""], ["HUND EIN", "x"]) == [((0, 1), (1, 0)), ()]
    (tmp_path / "en").write_text("a dog\nruns a dog\n")
    (tmp_path / "de").write_text("HUND EIN\nHUND RENNT\n")
    sides = ["--source", str(tmp_path / "en"), "--target", str(tmp_path / "de")]
    assert main(["align", "--model", str(folder), *sides]) == 0
    assert capsys.readouterr().out == "0-1 1-0\n0-1 2-0\n"
    assert main(["align", "--model", str(folder), *sides, "--reverse"]) == 0
    assert capsys.readouterr().out == "0-1 1-0\n0-2 1-0\n"
    assert main(["align", "--model", str(folder), *sides, "--scores", str(tmp_path / "scores")]) == 2
    assert "--scores can only be used with an aligner that" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(ModelError, match="is a dictionary; it cannot continue texts: use `dragoman align --model`"):
        dragoman.LanguageModel.load(folder)


def test_a_translator_and_the_server_align_with_it(folder: Path) -> None:
    aligner = dragoman.load(folder)

    def shouted(row: Row) -> list[str]:
        return [" ".join(WORDS[word] for word in reversed(row.text.split()))]

    with served({"en-de": shouted}, aligner=aligner) as service:
        fields = {"text": ["a dog runs"], "source": "en", "target": "de", "alignment": True}
        found = posted(service, "/v1/translate", **fields).json()["translations"][0]
    assert found["sentences"][0]["alignment"] == [[0, 2], [1, 1], [2, 0]]


def test_it_is_compared_with_the_attention_of_a_translator(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tiny_model(tmp_path / "translator")
    arguments = [str(tmp_path / "translator"), "a dog", "--target", "HUND EIN", "--aligner", str(folder)]
    assert main(["inspect", "alignment", *arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["links"]["dictionary"] == [[0, 1], [1, 0]]
    assert main(["inspect", "next", str(folder), "a dog"]) == 1
    assert "it cannot show its computation" in " ".join(capsys.readouterr().err.split())


def test_a_record_that_promises_too_much_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    abilities = frozenset({"align", "translate"})
    changed = replace(KIND, abilities=abilities)
    monkeypatch.setitem(KINDS, "dictionary", changed)
    with pytest.raises(ConfigError, match="whose attribute `kind` is not the record of this kind"):
        dragoman.load(folder)
    monkeypatch.setattr(DictionaryAligner, "kind", property(lambda _: changed, lambda *_: None), raising=False)
    with pytest.raises(ConfigError, match="promises 'translate', but DictionaryAligner has no request"):
        dragoman.load(folder)
