"""The cards of loaded models in notebooks."""

import json
from pathlib import Path

import pytest
import trained_model
from cards import rows, text
from safetensors.numpy import load_file
from tiny_language_model import write_tiny_language_model
from tiny_predictor import write_predictor

import dragoman
from dragoman.checkpoint.card.shown_model import ShownModel

DOGS = ["the dog", "the cat", "a dog"], ["der Hund", "die Katze", "ein Hund"]


def facts(model: ShownModel) -> dict[str, str]:
    return {row[0]: row[1] for row in rows(model) if len(row) == 2}


def parameters(folder: Path) -> str:
    return f"{sum(each.size for each in load_file(folder / 'model.safetensors').values()):,}"


def test_translator() -> None:
    translator = dragoman.load(trained_model.FOLDER, device="cpu", engine="torch")
    found = facts(translator)
    assert found["Parameters"] == parameters(trained_model.FOLDER)
    vocabulary = json.loads((trained_model.FOLDER / "tokenizer.json").read_text())["model"]["vocab"]
    assert found["Vocabulary"] == f"{len(vocabulary):,} entries, shared by both languages"
    assert found["Engine"].endswith(", float32") and found["It can"].startswith("translate, score texts")
    assert text(translator).startswith("Translation model, en → de")
    assert [row[:2] for row in rows(translator) if len(row) == 3][1:] == [
        [each.metric, f"{each.value:.2f}"] for each in translator.meta.scores
    ]


def test_language_model_predictor_and_aligner(tmp_path: Path) -> None:
    write_tiny_language_model(tmp_path / "lm")
    language_model = dragoman.load(tmp_path / "lm", device="cpu")
    assert facts(language_model)["Parameters"] == parameters(tmp_path / "lm")
    assert facts(language_model)["Vocabulary"] == f"{language_model.tokenizer.size:,} entries"
    predictor = dragoman.load(write_predictor(tmp_path / "labels", "requests"), device="cpu")
    assert facts(predictor)["Labels"] == "Frage zur Lieferung, sehr zufrieden"
    aligner, _ = dragoman.WordAligner.train(*DOGS)
    assert facts(aligner) == {"It can": "align words"}


@pytest.mark.parametrize("count", [1, 2])
def test_hypotheses(count: int) -> None:
    translator = dragoman.load(trained_model.FOLDER, device="cpu")
    found = translator.translate_nbest(["two dogs sleep .", "a <b> ."], translator.request(beam=2, nbest=count))
    assert isinstance(found, list) and found == [list(each) for each in found]
    assert text(found[0]).startswith("two dogs sleep .")
    assert rows(found[0])[1:] == [
        [str(rank), each.text, f"{each.score:.3f}", f"{each.log_probability:.3f}"]
        for rank, each in enumerate(found[0], 1)
    ]
    assert [row for each in found for row in rows(each)] == rows(found)
    assert ["Log-probability", f"{found[1][0].log_probability:.3f} nats"] in rows(found[1][0])
