"""Pairs of texts that are encoded separately: [u; v; |u − v|; u · v], or the cosine of their vectors."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from closeness import assert_close, close_to
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Predictor, evaluate_labels, inspect, train
from dragoman.base.errors import ConfigError
from dragoman.cli.main import main
from dragoman.models.attention_weights import record_weights
from dragoman.models.heads.pairs import divide_pairs
from dragoman.models.kinds.encoder_only import EncoderOnlyConfig
from dragoman.text.symbols import BOS, EOS, PAD
from dragoman.text.tokenizers import TextConfig, train_tokenizers

STACK: dict[str, Any] = {"kind": "transformer", "layers": 2, "heads": 2, "feedforward": 16}
ENCODERS: dict[str, dict[str, Any]] = {
    "transformer": STACK,
    "recurrent": {"kind": "recurrent"},
    "convolutional": {"kind": "convolutional", "layers": 2},
    "mean": {"kind": "mean"},
    "causal": {"kind": "causal", "decoder": STACK},
}
HEADS: dict[str, dict[str, Any]] = {
    "separate": {"kind": "classification", "labels": ["a", "b", "c"], "pair": "separate"},
    "first": {"kind": "classification", "labels": ["a", "b"], "pair": "separate", "pooling": "first", "hidden": True},
    "number": {"kind": "regression", "pair": "separate", "pooling": "max", "offset": 3, "scale": 2},
    "cosine": {"kind": "regression", "pair": "cosine", "offset": 3, "scale": 2},
}
PAIRS = [("a dog runs", "an animal moves over the grass"), ("", "a cat"), ("the cat sleeps", "the cat sleeps")]
MACHINE = {"device": "cpu", "precision": "float32", "threads": 1}


def build(encoder: str, head: str) -> Predictor:
    torch.manual_seed(1)
    settings = {"preset": None, "width": 8, "encoder": ENCODERS[encoder], "head": {**HEADS[head], "texts": 2}}
    config = EncoderOnlyConfig.model_validate(settings)
    text = TextConfig.model_validate({"subword": {"kind": "bpe", "size": 300}, "shared": True})
    texts = [text for pair in PAIRS for text in pair] * 3
    tokenizers = train_tokenizers(text, texts, texts)
    model = config.build_for(tokenizers.sizes)
    torch.nn.init.normal_(_table(model))
    return Predictor(model, tokenizers.source, config.head)


def _table(model: Any) -> torch.nn.Parameter:
    return next(each for each in model.modules() if isinstance(each, torch.nn.Embedding)).weight


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=5))
def test_rows_are_divided_into_their_texts(lengths: list[tuple[int, int, int]]) -> None:
    """Wherever the padding is, and also if a text contains BOS or EOS."""
    texts = [([BOS, *[5] * a, EOS], [BOS, *[7, BOS, EOS][:b], *[8] * b, EOS]) for a, b, _ in lengths]
    width = max(left + len(a) + len(b) for (a, b), (*_, left) in zip(texts, lengths, strict=True))
    rows = [[PAD] * left + a + b for (a, b), (*_, left) in zip(texts, lengths, strict=True)]
    tokens = torch.tensor([row + [PAD] * (width - len(row)) for row in rows])
    masks = [[left <= n < len(row) for n in range(width)] for row, (*_, left) in zip(rows, lengths, strict=True)]
    divided, mask = divide_pairs(tokens, torch.tensor(masks))
    assert divided.shape == mask.shape == (2 * len(texts), max(len(each) for pair in texts for each in pair))
    assert [row[own].tolist() for row, own in zip(divided, mask, strict=True)] == [t for pair in texts for t in pair]
    assert not divided[~mask].any() and bool((mask[:, 1:] <= mask[:, :-1]).all())


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_the_head_compares_the_vectors_of_single_texts(encoder: str, head: str) -> None:
    predictor = build(encoder, head)
    module: Any = predictor.model.head
    outputs = predictor.predict(PAIRS, batch_tokens=30)
    vectors = predictor.vectors([text for pair in PAIRS for text in pair])
    for number, (pair, output) in enumerate(zip(PAIRS, outputs, strict=True)):
        u, v = (_vector(predictor, text) for text in pair)
        for own, row in zip((u, v), vectors[2 * number : 2 * number + 2], strict=True):
            assert_close(row, own / np.linalg.norm(own))
        if head == "cosine":
            cosine = u @ v / np.linalg.norm(u) / np.linalg.norm(v)
            assert output.as_json()["value"] == pytest.approx(3 + 2 * (2 * cosine - 1), abs=1e-4)
            continue
        features = np.concatenate([u, v, abs(u - v), u * v])
        weight, bias = (each.detach().numpy() for each in (module.output.weight, module.output.bias))
        expected = weight @ features + bias
        if head == "number":
            assert output.as_json()["value"] == pytest.approx(3 + 2 * expected[0], abs=1e-4)
        else:
            exponents = np.exp(expected - expected.max())
            probabilities = list(output.as_json()["probabilities"].values())
            assert_close(probabilities, exponents / exponents.sum())


def _vector(predictor: Predictor, text: str) -> np.ndarray:
    """Return the vector of a text that is encoded alone, as its head pools it."""
    head: Any = predictor.model.head
    ids = torch.tensor([[BOS, *predictor.tokenizer.encode(text), EOS]])
    with torch.no_grad():
        memory = predictor.model.encode(ids, torch.ones_like(ids, dtype=torch.bool))
        states = memory.states[0]
        pooled = {"summary": memory.summary[0], "first": states[0], "max": states.amax(0)}[head.pooling]
        return (pooled if head.hidden is None else torch.tanh(head.hidden(pooled))).numpy()


@pytest.mark.parametrize(
    ("encoder", "head"), [*(("mean", head) for head in HEADS), ("recurrent", "cosine"), ("transformer", "first")]
)
def test_relevance_is_the_derivative_along_the_vectors_of_a_word(encoder: str, head: str) -> None:
    predictor = build(encoder, head)
    predictor.model.double()
    inspection = inspect(predictor, PAIRS[0])
    assert inspection.relevance is not None and inspection.erasure is not None
    assert [text.name for text in inspection.relevance.texts] == ["first text", "second text"]
    table = _table(predictor.model)
    for number, word in ((0, 2), (1, 5)):  # runs, grass: single tokens that occur nowhere else
        text = inspection.relevance.texts[number]
        tokens = predictor.tokenizer.encode(f"the {text.words[word]}")[1:]
        assert len(tokens) == 1
        values = []
        for scale in (1 + 1e-5, 1 - 1e-5):
            with torch.no_grad():
                before = table[tokens].clone()
                table[tokens] *= scale
                changed = inspect(predictor, PAIRS[0]).relevance
                table[tokens] = before
            assert changed is not None
            values.append(changed.value)
        assert text.values[word] == pytest.approx((values[0] - values[1]) / 2e-5, abs=1e-4)


@pytest.mark.parametrize("encoder", ["transformer", "causal"])
def test_attention_stays_within_a_text(encoder: str) -> None:
    predictor = build(encoder, "separate")
    inspection = inspect(predictor, PAIRS[0])
    assert len(inspection.maps) == 2
    rows = [[BOS, *predictor.tokenizer.encode(text), EOS] for text in PAIRS[0]]
    for each in inspection.maps:
        start = 0
        assert each.queries.count("<s>") == each.queries.count("</s>") == 2
        for row in rows:
            part = slice(start, start + len(row))
            tokens = torch.tensor([row])
            alone = record_weights(predictor.model.encoder, tokens, torch.ones_like(tokens, dtype=torch.bool))
            own = alone[each.name.removeprefix("encoder.")]
            assert_close(each.weights[:, part, part], own)
            start += len(row)
        assert_close(each.weights.sum(2), 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that predicts whether two texts are about the same animal."""
    path = tmp_path_factory.mktemp("pairs")
    draw = np.random.default_rng(1)
    animals = ["dog", "cat", "horse", "cow"]
    for name, count in (("train", 300), ("valid", 60)):
        lines = ["first\tsecond\tlabel\n"]
        for _ in range(count):
            one, other = draw.choice(animals, 2)
            other = one if draw.random() < 0.5 else other
            lines.append(f"the {one} runs\ta {other} that sleeps\t{5.0 if one == other else 0.0}\n")
        (path / f"{name}.tsv").write_text("".join(lines))
    columns = {"text": "first", "pair": "second", "label": "label"}
    recipe = {
        "task": {"kind": "regression"},
        "data": {name: {"path": str(path / f"{name}.tsv"), "columns": columns} for name in ("train", "valid")},
        "model": {"preset": "mean", "width": 16, "dropout": 0, "head": {"pair": "cosine", "dropout": 0.1}},
        "train": {"max_steps": 60, "validate_every": 60, "schedule": {"kind": "cosine", "peak": 0.1}, **MACHINE},
        "out": str(path / "run"),
    }
    train(recipe, quiet=True)
    return path


def test_a_trained_model_compares_texts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    predictor = Predictor.load(folder / "run")
    same, other = predictor.predict([("the dog runs", "a dog that sleeps"), ("the dog runs", "a cat that sleeps")])
    assert same.as_json()["value"] > other.as_json()["value"] + 2
    settings = {"columns.text": "first", "columns.pair": "second", "columns.label": "label"}
    direct = evaluate_labels(predictor, folder / "valid.tsv", settings)
    vectors = evaluate_labels(predictor, folder / "valid.tsv", settings, vectors=True)
    pearson = [{each.key: each.value for each in one.reports[0].scores}["pearson"] for one in (direct, vectors)]
    assert pearson[0] == close_to(pearson[1]) and pearson[0] > 0.9
    with pytest.raises(ConfigError, match="text 1: this is a pair, but the model encodes the texts of a pair separate"):
        predictor.vectors([("a dog", "a cat")])
    pair = [str(folder / "run"), "the dog runs", "--pair", "a dog sleeps", "--out", str(folder / "looks")]
    assert main(["inspect", *pair]) == 0
    index = json.loads((folder / "looks" / "index.json").read_text())
    assert [len(text["values"]) for text in index["relevance"]["texts"]] == [3, 3]


def test_single_texts_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "data.tsv").write_text("a dog\tx\na cat\ty\n" * 3)
    recipe: dict[str, Any] = {
        "task": {"kind": "classification"},
        "data": {"train": str(tmp_path / "data.tsv"), "valid": str(tmp_path / "data.tsv")},
        "model": {"preset": "mean", "width": 8, "head": {"pair": "separate"}},
        "train": {"max_steps": 1, **MACHINE},
        "out": str(tmp_path / "run"),
    }
    with pytest.raises(ConfigError, match="model.head.pair is separate, but the examples are single texts"):
        train(recipe, quiet=True)
    recipe["model"]["head"]["texts"] = 1
    with pytest.raises(ConfigError, match="`texts` is 1"):
        train(recipe, quiet=True)
