"""Gradient × input: exact for linear models, equal to finite differences, per word, beside the attention weights."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from closeness import assert_close, close_to
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Predictor, inspect
from dragoman.base.errors import ConfigError, DataError
from dragoman.checkpoint.folder import write_model_folder
from dragoman.checkpoint.meta import Meta
from dragoman.checkpoint.tensors import model_parameters
from dragoman.cli.main import main
from dragoman.data.labelled.examples import LabelledText, Question, TaggedSentence
from dragoman.models.kinds.encoder_only import EncoderOnlyConfig
from dragoman.models.relevance import words_of_tokens
from dragoman.text.symbols import BOS, EOS
from dragoman.text.tokenizers import TextConfig, Tokenizers, train_tokenizers

STACK: dict[str, Any] = {"kind": "transformer", "layers": 2, "heads": 2, "feedforward": 16}
ENCODERS: dict[str, dict[str, Any]] = {
    "transformer": STACK,
    "recurrent": {"kind": "recurrent"},
    "convolutional": {"kind": "convolutional", "layers": 2},
    "mean": {"kind": "mean"},
    "causal": {"kind": "causal", "decoder": STACK},
}
HEADS: dict[str, dict[str, Any]] = {
    "classification": {"kind": "classification", "labels": ["no", "yes", "sehr gut"], "hidden": True},
    "regression": {"kind": "regression", "offset": 2.0, "scale": 3.0},
    "tagging": {"kind": "tagging", "labels": ["O", "B-PER", "I-PER"]},
    "span": {"kind": "span", "no_answer": True},
}
TEXT = "A fine film, isn't it? 😀 Größe unnoticeable"
EXAMPLES: dict[str, Any] = {
    "classification": LabelledText((TEXT, "Another one.")),
    "regression": LabelledText((TEXT,)),
    "tagging": TaggedSentence(tuple(TEXT.split())),
    "span": Question("1", "What is it?", TEXT),
}


def tokenizers(kind: str = "bpe") -> Tokenizers:
    size = {"size": 300} if kind == "bpe" else {}
    return train_tokenizers(TextConfig.model_validate({"subword": {"kind": kind, **size}}), [TEXT] * 3, [TEXT] * 3)


def predictor(
    encoder: str, head: str, vocabulary: str = "bpe", length: int | None = None, **head_settings: Any
) -> Predictor:
    torch.manual_seed(3)
    settings = {"preset": None, "width": 8, "encoder": ENCODERS[encoder], "head": {**HEADS[head], **head_settings}}
    config = EncoderOnlyConfig.model_validate(settings)
    text = tokenizers(vocabulary)
    model = config.build_for(text.sizes)
    torch.nn.init.normal_(next(each for each in model.modules() if isinstance(each, torch.nn.Embedding)).weight)
    return Predictor(model, text.source, config.head, length)


@pytest.mark.parametrize("vocabulary", ["bpe", "word", "character"])
def test_the_relevance_of_a_linear_model_is_exact(vocabulary: str) -> None:
    linear = predictor("mean", "classification", vocabulary, hidden=False)
    relevance = inspect(linear, EXAMPLES["classification"]).relevance
    assert relevance is not None
    (encoded,) = linear.encode([EXAMPLES["classification"]])
    ids = encoded.inputs[0].ids
    number = linear.labels.index(linear.predict([EXAMPLES["classification"]])[0].as_json()["label"])
    table = linear.model.encoder.embedding.tokens.weight.detach() * 8**0.5
    row, bias = linear.model.head.output.weight[number].detach(), linear.model.head.output.bias[number].item()
    each = (table[list(ids)] @ row / len(ids)).numpy()  # what each token adds to the logit
    assert relevance.total == close_to(relevance.value - bias)
    specials = [index for index, token in enumerate(ids) if token in (BOS, EOS)]
    assert relevance.symbols == close_to(each[specials].sum())
    for text, (start, end) in zip(relevance.texts, ((1, specials[1]), (specials[1] + 1, specials[2])), strict=True):
        assert sum(text.values) == close_to(each[start:end].sum())


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_the_relevance_of_a_word_is_the_derivative_along_its_vectors(encoder: str, head: str) -> None:
    """Scaling the vectors of a word's tokens by 1 + ε changes the output by ε · relevance."""
    model = predictor(encoder, head)
    model.model.double()
    inspection = inspect(model, EXAMPLES[head])
    relevance = inspection.relevance
    assert relevance is not None
    embedding = next(
        each for each in model.model.modules() if type(each).__name__ == "Embedding" and hasattr(each, "tokens")
    )
    (encoded,) = model.encode([EXAMPLES[head]])
    tokens = torch.tensor([encoded.inputs[0].ids])

    def output(scale: torch.Tensor) -> float:
        handle = embedding.tokens.register_forward_hook(lambda _, __, vectors: vectors * scale[:, None])
        try:
            with torch.no_grad():
                outputs = model.model(tokens, torch.ones_like(tokens, dtype=torch.bool))[0]
        finally:
            handle.remove()
        return float(SELECT[head](outputs, inspection, encoded.inputs[0], model))

    count, step = tokens.size(1), 1e-5
    differences = []
    for position in range(count):
        change = torch.zeros(count, dtype=torch.float64)
        change[position] = step
        differences.append((output(1 + change) - output(1 - change)) / (2 * step))
    assert output(torch.ones(count)) == close_to(relevance.value)
    assert relevance.total == pytest.approx(sum(differences), abs=1e-4)
    text = relevance.texts[-1]
    ids = encoded.inputs[0].ids
    last = max(index for index in range(len(ids) - 1) if ids[index] in (BOS, EOS)) + 1
    pieces = model.tokenizer.pieces(ids[last:-1])
    end = last + next(index for index, piece in enumerate(pieces, 1) if not piece.endswith("@@"))
    assert text.values[0] == pytest.approx(sum(differences[last:end]), abs=1e-4), (text.words, pieces)


def _label(outputs: torch.Tensor, inspection: Any, row: Any, model: Predictor) -> torch.Tensor:
    return outputs[model.labels.index(inspection.target)]


def _answer(outputs: torch.Tensor, inspection: Any, row: Any, model: Predictor) -> torch.Tensor:
    if inspection.target == "no answer":
        return outputs[0].sum()
    spans = model.tokenizer.spans(TEXT)
    start = TEXT.index(inspection.target)
    inside = [n for n, (a, b) in enumerate(spans) if a < start + len(inspection.target) and b > start]
    return outputs[row.places[inside[0]], 0] + outputs[row.places[inside[-1]], 1]


SELECT: dict[str, Any] = {
    "classification": _label,
    "regression": lambda outputs, *_: outputs,
    "tagging": lambda outputs, inspection, row, model: outputs[
        row.places[int(inspection.target.split("word ")[1].rstrip(")")) - 1],
        model.labels.index(inspection.target.split(" for ")[0]),
    ],
    "span": _answer,
}


@pytest.mark.parametrize("encoder", ENCODERS)
def test_attention_is_shown_beside_relevance_where_there_is_any(encoder: str) -> None:
    inspection = inspect(predictor(encoder, "classification"), EXAMPLES["classification"])
    layers = {"transformer": 2, "causal": 2}.get(encoder, 0)
    assert [each.layer for each in inspection.maps] == list(range(1, layers + 1))
    assert all(each.kind == "encoder.self_attention" for each in inspection.maps)
    for each in inspection.maps:
        assert_close(each.weights.sum(2), 1)
        assert (
            each.queries[0] == "<s>" and each.queries.count("</s>") == 2 and len(each.queries) == each.weights.shape[1]
        )
    assert bool(inspection.absent) == (layers == 0)


def test_a_word_of_a_long_sentence_is_chosen() -> None:
    """A divided sentence: the relevance is that of the input that predicts the word."""
    words = (*tuple(f"w{number} Anna" for number in range(6)), "the", "end")
    tagger = predictor("transformer", "tagging", length=14)
    sentence = TaggedSentence(tuple(word for pair in words for word in pair.split()))
    tags = tagger.predict([sentence])[0].as_json()["tags"]
    for number in (1, 5, len(sentence.words)):
        inspection = inspect(tagger, sentence, word=number)
        assert inspection.target == f"{tags[number - 1]} for {sentence.words[number - 1]!r} (word {number})"
        assert inspection.relevance is not None
        shown = inspection.relevance.texts[0].words
        assert sentence.words[number - 1] in shown and " ".join(shown) in " ".join(sentence.words)
    with pytest.raises(ConfigError, match="there is no word 99: the text has"):
        inspect(tagger, sentence, word=99)


def test_errors() -> None:
    classifier = predictor("mean", "classification")
    with pytest.raises(ConfigError, match="only for a model that predicts tags"):
        inspect(classifier, "a", word=1)
    with pytest.raises(DataError, match="blank"):
        inspect(classifier, "  ")
    with pytest.raises(DataError, match="pictures show at most 512"):
        inspect(classifier, "a b " * 600)


@given(st.lists(st.integers(1, 4), max_size=8), st.lists(st.integers(1, 5), max_size=8))
def test_every_token_belongs_to_the_word_that_contains_it(tokens: list[int], units: list[int]) -> None:
    def spans(lengths: list[int]) -> list[tuple[int, int]]:
        return list(itertools.pairwise(np.cumsum([0, *lengths]).tolist()))

    words, owners = words_of_tokens(spans(tokens), spans(units))
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(words))
    for (start, end), owner in zip(spans(tokens), owners, strict=True):
        assert words[owner][0] <= start and end <= words[owner][1]


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("encoder", ["transformer", "mean", "causal"])
def test_erasure_is_the_difference_to_the_text_without_the_word(encoder: str, head: str) -> None:
    model = predictor(encoder, head, "character")
    example = {
        **EXAMPLES,
        "classification": LabelledText(("ab cd , ef",)),
        "regression": LabelledText(("ab cd , ef",)),
        "tagging": TaggedSentence(("ab", "cd", ",", "ef")),
    }[head]
    inspection = inspect(model, example)
    assert inspection.erasure is not None and inspection.relevance is not None
    text = inspection.erasure.texts[-1]
    assert text.words == inspection.relevance.texts[-1].words
    if head in ("classification", "regression"):
        assert text.words == ("ab", "cd", ",", "ef")
        without = model.encode([LabelledText(("ab cd ef",))])[0].inputs[0]
        logits = model.model(torch.tensor([without.ids]), torch.ones(1, len(without.ids), dtype=torch.bool))[0]
        number = model.labels.index(inspection.target) if model.labels else ()
        assert text.values[2] == close_to(inspection.erasure.value - logits[number].item())
    if head == "tagging":  # the tag of the first word has no logit without the word
        assert np.isnan(text.values[0])
        without = model.encode([TaggedSentence(("ab", "cd", ","))])[0].inputs[0]
        logits = model.model(torch.tensor([without.ids]), torch.ones(1, len(without.ids), dtype=torch.bool))[0]
        label = model.labels.index(inspection.target.split(" for ")[0])
        assert text.values[3] == close_to(inspection.erasure.value - logits[1, label].item())


def test_the_folder_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answering = predictor("transformer", "classification")
    settings = {"preset": None, "width": 8, "encoder": ENCODERS["transformer"], "head": HEADS["classification"]}
    config = EncoderOnlyConfig.model_validate(settings)
    stored = {"task": {"kind": "classification"}, "model": config.model_dump(mode="json"), "data": {}}
    write_model_folder(
        tmp_path / "m", model_parameters(answering.model), json.dumps(stored), tokenizers(), Meta(step=1)
    )
    arguments = ["inspect", str(tmp_path / "m"), f"{TEXT} $x^2$", "--pair", "Another one.", "--out"]
    assert main([*arguments, str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "label " in printed and "second text" in printed and "encoder.self_attention" in printed
    index = json.loads((tmp_path / "out" / "index.json").read_text())
    assert index["relevance"]["texts"][1]["words"] == ["Another", "one", "."]
    assert index["relevance"]["sum"] == pytest.approx(
        index["relevance"]["symbols"] + sum(sum(text["values"]) for text in index["relevance"]["texts"])
    )
    page = (tmp_path / "out" / "index.html").read_text()
    assert "Relevance of the words" in page and "erasure.png" in page and "relevance.png" in page
    assert (tmp_path / "out" / "relevance.svg").stat().st_size > 1000
    with np.load(tmp_path / "out" / "attention.npz") as arrays:
        assert arrays["relevance.1"].tolist() == pytest.approx(index["relevance"]["texts"][1]["values"])
    assert main([*arguments, str(tmp_path / "other"), "--target", "x"]) != 0
    assert main([*arguments, str(tmp_path / "other"), "--word", "1"]) != 0
