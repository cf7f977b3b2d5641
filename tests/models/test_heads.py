"""Models with a head: outputs do not depend on padding, and start from any other model."""

from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from tiny_language_model import write_tiny_language_model
from tiny_model import write_tiny_model

from dragoman import train
from dragoman.checkpoint.tensors import load_tensors
from dragoman.models.kinds.encoder_only import EncoderOnlyConfig
from dragoman.nn.embedding import document_starts, occur_in_both
from dragoman.text.symbols import BOS, EOS, PAD, UNK
from dragoman.text.tokenizers import VocabularySizes

STACK: dict[str, Any] = {"kind": "transformer", "layers": 2, "heads": 2, "feedforward": 16}
ENCODERS: dict[str, dict[str, Any]] = {
    "transformer": STACK,
    "recurrent": {"kind": "recurrent"},
    "convolutional": {"kind": "convolutional", "layers": 2},
    "bytenet": {"kind": "bytenet"},
    "mean": {"kind": "mean"},
    "sum": {"kind": "sum"},
    "causal transformer": {"kind": "causal", "decoder": STACK},
    "causal recurrent": {"kind": "causal", "decoder": {"kind": "recurrent"}},
}
HEADS: dict[str, dict[str, Any]] = {
    "classification": {"kind": "classification", "labels": ["a", "b", "c"]},
    "pooled as in BERT": {"kind": "classification", "labels": ["a", "b"], "pooling": "first", "hidden": True},
    "maximum": {"kind": "regression", "pooling": "max", "offset": 3, "scale": 2},
    "tagging": {"kind": "tagging", "labels": ["O", "B-X", "I-X"]},
    "span": {"kind": "span"},
}


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_row_has_the_same_outputs_alone_and_beside_longer_rows(encoder: str, head: str) -> None:
    torch.manual_seed(1)
    config = EncoderOnlyConfig.model_validate(
        {"preset": None, "width": 8, "encoder": ENCODERS[encoder], "head": HEADS[head], "segments": 2, "matches": True}
    )
    model = config.build_for(VocabularySizes(20, 20)).eval()
    rows = [[BOS, 5, 6, EOS], [BOS, 7, 8, 9, EOS, 10, 11, EOS], [BOS, EOS]]
    width = max(map(len, rows)) + 3
    tokens = torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows])
    mask = torch.arange(width) < torch.tensor([[len(row)] for row in rows])
    with torch.no_grad():
        together = model(tokens, mask)
        for number, row in enumerate(rows):
            alone = model(torch.tensor([row]), torch.ones(1, len(row), dtype=torch.bool))[0]
            expected = together[number][: len(row)] if together.dim() > 2 else together[number]
            torch.testing.assert_close(alone, expected, rtol=1e-5, atol=1e-5)


def test_segments_distinguish_the_texts_of_a_pair() -> None:
    torch.manual_seed(1)
    config = EncoderOnlyConfig.model_validate({"preset": None, "width": 8, "encoder": {"kind": "mean"}, "segments": 2})
    model = config.build_for(VocabularySizes(20, 20)).eval()
    mask = torch.ones(1, 6, dtype=torch.bool)
    pair, swapped = torch.tensor([[BOS, 5, 6, EOS, 7, EOS]]), torch.tensor([[BOS, 7, EOS, 5, 6, EOS]])
    assert not torch.allclose(model(pair, mask), model(swapped, mask))
    vectors = model.encoder.embedding.segments(torch.tensor([0, 0, 0, 0, 1, 1]))
    plain = model.encoder.embedding.tokens(pair[0]) * 8**0.5
    torch.testing.assert_close(model.encode(pair, mask).states[0, 0], (plain + vectors).mean(0))


def test_matches_mark_the_tokens_of_both_texts() -> None:
    torch.manual_seed(1)
    encoder, rows = {"kind": "mean"}, [[BOS, 5, 6, UNK, 5, EOS, 9, 6, 5, UNK, EOS, PAD], [BOS, 5, 5, EOS, *[PAD] * 8]]
    config = EncoderOnlyConfig.model_validate({"preset": None, "width": 8, "encoder": encoder, "matches": True})
    embedding = config.build_for(VocabularySizes(20, 20)).eval().encoder.embedding
    tokens = torch.tensor(rows)
    added = embedding(tokens) - embedding.tokens(tokens) * 8**0.5
    expected = torch.tensor([[0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0], [0] * 12])
    torch.testing.assert_close(added, expected.unsqueeze(2) * embedding.matches.weight * 8**0.5)


def test_matches_are_those_within_a_document() -> None:
    documents = [[BOS, 5, 6, EOS, 6, 7, EOS], [BOS, 7, EOS, 5, 7, EOS]]
    alone = [occur_in_both(torch.tensor([each]))[0].tolist() for each in documents]
    packed = torch.tensor([documents[0] + documents[1]])
    assert occur_in_both(packed, document_starts(packed))[0].tolist() == alone[0] + alone[1]
    assert alone == [[False, False, True, False, True, False, False], [False, True, False, False, True, False]]


def test_texts_that_are_encoded_separately_have_no_matches() -> None:
    with pytest.raises(ValidationError, match=r"set model\.head\.pair=joined, or remove model\.matches"):
        EncoderOnlyConfig.model_validate({"matches": True, "head": {"pair": "separate"}})


def recipe(tmp_path: Path, start: Path, **model: Any) -> dict[str, Any]:
    rows = [f"the man {verb} a dog\t{label}" for verb, label in (("sees", "yes"), ("hears", "no"))] * 8
    (tmp_path / "data.tsv").write_text("\n".join(rows) + "\n")
    machine = {"device": "cpu", "precision": "float32", "threads": 1, "schedule": {"kind": "constant", "peak": 1e-30}}
    return {
        "task": {"kind": "classification"},
        "data": {"train": str(tmp_path / "data.tsv"), "valid": str(tmp_path / "data.tsv")},
        "model": model,
        "train": {"max_steps": 1, "start": str(start), **machine},
        "out": str(tmp_path / "run"),
    }


@pytest.mark.parametrize(("write", "prefix"), [(write_tiny_model, ""), (write_tiny_language_model, "encoder.")])
def test_a_translators_encoder_and_a_language_models_decoder_get_a_head(
    write: Any, prefix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "start")
    train(recipe(tmp_path, tmp_path / "start"))
    stored = load_tensors(tmp_path / "start" / "model.safetensors")[0]
    ours = load_tensors(tmp_path / "run" / "model.safetensors")[0]
    copied = {name: stored[name.removeprefix(prefix)] for name in ours if name.removeprefix(prefix) in stored}
    assert ours.keys() - copied.keys() == {"head.output.weight", "head.output.bias"}
    for name, values in copied.items():
        torch.testing.assert_close(ours[name], values, rtol=0, atol=1e-20)
    assert "New: head" in " ".join(capsys.readouterr().err.split())


def test_a_head_for_other_labels_is_new(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tiny_model(tmp_path / "start")
    train(recipe(tmp_path, tmp_path / "start"))
    (tmp_path / "first").mkdir()
    first = (tmp_path / "run").rename(tmp_path / "first" / "run")
    capsys.readouterr()
    train(recipe(tmp_path, first, head={"labels": ["no", "yes"]}))
    (tmp_path / "run").rename(tmp_path / "same")
    assert "New:" not in capsys.readouterr().err
    train(recipe(tmp_path, first, head={"labels": ["yes", "no"]}))
    assert "head (for another task or other labels)" in " ".join(capsys.readouterr().err.split())
