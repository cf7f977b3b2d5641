"""Taggers that read the factors of words: what they learn, long sentences, prediction, inspection and errors."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from closeness import assert_close

from dragoman import Predictor, evaluate_labels, inspect, train
from dragoman.base.errors import ConfigError, DataError
from dragoman.base.settings.load import load_settings
from dragoman.data.labelled.examples import TaggedSentence
from dragoman.inference.prediction.heads.inputs import factored_inputs
from dragoman.inference.prediction.outputs import compute_outputs, input_tensors
from dragoman.models.kinds.encoder_only import EncoderOnly, EncoderOnlyConfig
from dragoman.tasks.labelled.config import TaggingRun
from dragoman.tasks.labelled.rows import collate_rows
from dragoman.text.word_factors import factor_numbers

ENDINGS = {"ly": "ADV", "ing": "VERB", "ness": "NOUN", "ous": "ADJ"}
MACHINE = {"device": "cpu", "precision": "float32", "threads": 1}


def write(path: Path, seed: int, columns: bool = False) -> Path:
    """Write sentences of random words, whose tag is that of their ending or of a further column."""
    draw, lines = np.random.default_rng(seed), []
    for _ in range(60):
        for _ in range(5):
            ending = draw.choice(list(ENDINGS))
            stem = "".join(draw.choice(list("bdfgkmprtv"), 5))
            lines.append(f"{stem} {ending} {ENDINGS[ending]}" if columns else f"{stem}{ending} {ENDINGS[ending]}")
        lines.append("")
    path.write_text("\n".join(lines) + "\n")
    return path


def run_of(folder: Path, columns: bool = False, **changes: Any) -> Path:
    data = {
        name: {"path": str(write(folder / name, seed, columns)), "word": 1, **columns_of(columns)}
        for seed, name in enumerate(("train", "valid"), 1)
    }
    settings = {
        "task": {"kind": "tagging"},
        "data": data,
        "model": {"preset": "words", "width": 16, "factors": {"buckets": 2000}},
        "train": {"max_steps": 100, "validate_every": 50, "schedule": {"kind": "cosine", "peak": 0.02}, **MACHINE},
        "out": str(folder / "run"),
    }
    train({**settings, **changes})
    return folder / "run"


def columns_of(columns: bool) -> dict[str, Any]:
    return {"tag": 3, "features": [2]} if columns else {"tag": 2}


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_of(tmp_path_factory.mktemp("words"))


def test_endings_of_unknown_words_are_learned(learned: Path, tmp_path: Path) -> None:
    assert load_settings(learned / "config.yaml", [], TaggingRun).model.preset == "words"
    test = write(tmp_path / "test", 3)
    scores = evaluate_labels(learned, test=test, settings=["word=1", "tag=2"], quiet=True).reports[0].scores
    assert next(score.value for score in scores if score.key == "accuracy") > 95
    predictor = Predictor.load(learned)
    (prediction,) = predictor.predict([["zzzzously", "gladness"]])
    assert prediction.as_json()["tags"] == ["ADV", "NOUN"]
    (text,) = predictor.predict(["Zzzzously, gladness"])
    assert text.as_json()["words"] == ["Zzzzously", ",", "gladness"]


def test_further_columns_are_factors(tmp_path: Path) -> None:
    run = run_of(tmp_path, columns=True)
    predictor = Predictor.load(run)
    assert not predictor.tokenizer.tags
    sentence = TaggedSentence(("one", "two"), features=(("ness", "unknown"),))
    (encoded,) = predictor.encode([sentence])
    (row,) = encoded.inputs
    assert len(row.ids) == 4 and row.factors is not None
    assert row.factors[1] == factor_numbers("one", ("ness",))
    (prediction,) = predictor.predict([sentence])
    assert prediction.as_json()["tags"][0] == "NOUN"
    with pytest.raises(DataError, match="reads 1 further columns"):
        predictor.predict([["one", "two"]])
    scores = evaluate_labels(run, test=tmp_path / "valid", settings=["word=1", "tag=3", "features=[2]"], quiet=True)
    assert next(score.value for score in scores.reports[0].scores if score.key == "accuracy") > 80


def test_predictions_do_not_depend_on_the_batch(learned: Path) -> None:
    predictor = Predictor.load(learned)
    sentences = [["runing", "madly"], [], ["joyous"], ["a", "b", "c", "d", "sadness"]]
    together = predictor.predict(sentences)
    for one, alone in zip(together, predictor.predict(sentences, batch_tokens=1), strict=True):
        assert one.as_json()["tags"] == alone.as_json()["tags"]
        assert_close(one.as_json()["probabilities"], alone.as_json()["probabilities"])


def test_every_word_of_a_divided_sentence_has_its_factors() -> None:
    words, factors = [[10 + number, 99] for number in range(30)], [(number, 2 * number) for number in range(1, 31)]
    inputs = list(factored_inputs(words, factors, (0, 0), 12))
    assert len(inputs) > 2 and [each.first for each in inputs] != [0] * len(inputs)
    for each in inputs:
        tokens = each.tokens
        assert tokens.shape == (len(each.ids), 3) and not tokens[[0, -1], 1:].any()
        for token, *own in tokens[1:-1].tolist():
            assert tuple(own) == factors[token - 10]
    predicted = [each.ids[place] - 10 for each in inputs for place in each.places]
    assert predicted == list(range(30))
    assert next(factored_inputs([], [], (0, 0), 12)).tokens.tolist() == [[1, 0, 0], [2, 0, 0]]


def test_a_batch_has_the_factors_of_each_row(learned: Path) -> None:
    predictor = Predictor.load(learned)
    encoded = predictor.encode([["madly"], ["joyous", "sadness", "runing"]])
    rows = [(row, [0] * len(row.places)) for each in encoded for row in each.inputs]
    batch = collate_rows(rows, range(2))
    assert batch.tokens.shape == (2, 5, 13) and batch.tokens.dtype == torch.int64
    tokens, mask = input_tensors([row for row, _ in rows])
    assert torch.equal(tokens, batch.tokens) and torch.equal(mask, batch.mask)
    first, second = batch.split(2)
    assert first.tokens.shape == (1, 3, 13) and first.labels.shape == (1, 3)
    assert torch.equal(second.tokens[0], batch.tokens[1])


def test_words_are_explained(learned: Path) -> None:
    words = ["runing", "madly", "joyous"]
    found = inspect(learned, words, word=2)
    for relevance in (found.relevance, found.erasure):
        assert relevance is not None and relevance.texts[0].words == tuple(words)
    assert found.relevance is not None and np.abs(found.relevance.texts[0].values).argmax() == 1
    predictor = Predictor.load(learned)
    (encoded,) = predictor.encode([words])
    (row,) = encoded.inputs
    shorter = row.without([1])
    assert row.factors is not None and shorter.factors == (row.factors[0], *row.factors[2:])
    (expected,) = predictor.encode([words[1:]])
    assert_close(
        compute_outputs(predictor.model, [shorter], predictor.device)[0],
        compute_outputs(predictor.model, expected.inputs, predictor.device)[0],
    )


def test_neighbours_are_read_by_a_linear_function(tmp_path: Path) -> None:
    """The encoder reads each word alone, so that only `context` knows the endings of the neighbours."""
    encoder = {"kind": "convolutional", "layers": 1, "kernel": 1}
    head = {"dropout": 0, "context": {"buckets": 8000, "dropout": 0}}
    model = {"preset": None, "width": 8, "dropout": 0, "encoder": encoder, "factors": {"buckets": 500}, "head": head}
    draw, lines = np.random.default_rng(1), []
    for _ in range(80):
        words = [f"{draw.integers(10)}{draw.choice(['a', 'b'])}" for _ in range(6)]
        before = ["a", *(word[-1] for word in words)]
        lines += [*(f"{word} {last.upper()}" for word, last in zip(words, before, strict=False)), ""]
    path = tmp_path / "endings"
    path.write_text("\n".join(lines) + "\n")
    run = run_of(tmp_path, model=model, data={"train": str(path), "valid": str(path)})
    (prediction,) = Predictor.load(run).predict([["9b", "8a", "7b", "6b", "5a"]])
    assert prediction.as_json()["tags"][1:] == ["B", "A", "B", "B"]
    found = inspect(run, ["9b", "8a", "7b"], word=2)
    assert found.erasure is not None and np.nanargmax(np.abs(found.erasure.texts[0].values)) == 0


def test_the_native_engine_does_not_read_factors(tmp_path: Path) -> None:
    encoder = {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 16}
    run = run_of(tmp_path, model={"preset": None, "width": 16, "encoder": encoder, "factors": {"buckets": 100}})
    assert Predictor.load(run).engine.name == "torch"
    with pytest.raises(ConfigError, match=r"does not support the factors of words \(model.factors\)"):
        Predictor.load(run, engine="native")


def test_a_tagger_starts_from_another(learned: Path, tmp_path: Path) -> None:
    loop = {"start": str(learned), "max_steps": 1, **MACHINE}
    run = run_of(tmp_path, model={}, train=loop)
    assert Predictor.load(run).model.reads_factors
    (prediction,) = Predictor.load(run).predict([["zzzzously", "gladness"]])
    assert prediction.as_json()["tags"] == ["ADV", "NOUN"]


def test_only_taggers_read_factors() -> None:
    with pytest.raises(ValueError, match=r"model\.factors is for taggers"):
        EncoderOnlyConfig.model_validate({"preset": "words", "head": {"kind": "classification"}})


def test_tokens_without_factors_are_read_too(learned: Path) -> None:
    """Texts of the other tasks of a run have no factors."""
    predictor = Predictor.load(learned)
    model: EncoderOnly = predictor.model
    (encoded,) = predictor.encode([["madly", "joyous"]])
    row = replace(encoded.inputs[0], factors=None)
    tokens, mask = input_tensors([row])
    assert tokens.dim() == 2
    zeros = torch.cat([tokens.unsqueeze(2), torch.zeros(*tokens.shape, 12, dtype=torch.int64)], 2)
    with torch.no_grad():
        assert_close(model.encode(tokens, mask).states, model.encode(zeros, mask).states)
