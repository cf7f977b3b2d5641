"""Folders of BERT models that are damaged, inconsistent or unsupported are rejected by name, and nothing is written."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from bert_folders import VOCABULARY, write_bert
from safetensors.torch import load_file, save_file
from tiny_model import write_tiny_model

from dragoman.base.errors import ConfigError, DragomanError, ModelError
from dragoman.cli.main import main
from dragoman.exchange.formats import export, import_model

LABELS = {"id2label": {0: "bad", 1: "good"}, "num_labels": 2}
PARAMETERS, QUERY = "model.safetensors", "bert.encoder.layer.1.attention.self.query.weight"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bert") / "classifier"
    write_bert(folder, "BertForSequenceClassification", **LABELS)
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy of a classifier."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in original.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    return copy


def change_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def change_tensors(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    tensors = load_file(folder / PARAMETERS)
    change(tensors)
    save_file(tensors, folder / PARAMETERS)


def check_rejected(folder: Path, message: str) -> None:
    out = folder.parent / "out"
    with pytest.raises(DragomanError, match=message):
        import_model(folder, out)
    assert not out.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensors: tensors.pop(QUERY), rf"missing: {QUERY} \(32, 32\)"),
        (lambda tensors: tensors.pop("classifier.weight"), r"missing: classifier.weight \(2, 32\)"),
        (lambda tensors: tensors.update(extra=torch.zeros(3)), r"unknown: extra \(3,\)"),
        (lambda tensors: tensors.update({QUERY: torch.zeros(32, 31)}), rf"wrong shape: {QUERY} is \(32, 31\)"),
        (lambda tensors: tensors.update({QUERY: torch.zeros(32, 32).long()}), f"wrong type: {QUERY} is torch.int64"),
        (
            lambda tensors: tensors.update({"bert.embeddings.position_ids": torch.arange(64).flip(0)}),
            "unsupported values: bert.embeddings.position_ids",
        ),
        (
            lambda tensors: tensors.update({"embeddings.LayerNorm.weight": torch.ones(32)}),
            "bert.embeddings.LayerNorm.weight twice",
        ),
    ],
)
def test_tensors_that_do_not_fit_are_named(folder: Path, change: Any, message: str) -> None:
    change_tensors(folder, change)
    check_rejected(folder, message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": 48}, "wrong shape: bert.embeddings.word_embeddings.weight"),
        ({"num_hidden_layers": 3}, "missing: bert.encoder.layer.2."),
        ({"num_hidden_layers": 1}, "unknown: bert.encoder.layer.1."),
        ({"vocab_size": 101}, "102 entries, but the embeddings in config.json have 101 rows"),
        ({"hidden_act": "mish"}, "unknown hidden_act 'mish'"),
        ({"is_decoder": True}, "is_decoder is True"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ({"architectures": ["BertForMultipleChoice"]}, "BertForMultipleChoice are not supported"),
        ({"architectures": ["BertModel"]}, "unknown: classifier.weight"),
        ({"problem_type": "multi_label_classification"}, "problem_type is 'multi_label_classification'"),
        ({"problem_type": "regression"}, "regression of 2 numbers"),
        ({"id2label": {"0": "bad", "2": "good"}}, "keys of id2label must be 0 to 1, not 0, 2"),
        ({"id2label": {"0": "bad", "1": "bad"}, "label2id": None}, "'bad' twice"),
        ({"label2id": {"bad": 1, "good": 0}}, "id2label and label2id disagree: 'bad' is 0 in one and 1 in the other"),
        (
            {"id2label": {"0": "a", "1": "b", "2": "c"}, "label2id": None},
            r"wrong shape: classifier.weight is \(2, 32\)",
        ),
        ({"num_labels": 3}, "num_labels is 3, but id2label has 2 labels"),
        ({"pad_token_id": 3}, r"\[PAD\] has the id 0, but pad_token_id in config.json is 3"),
        ({"quantization_config": {}}, "quantised"),
        ({"num_attention_heads": 5}, "not divisible by 5 heads"),
        ({"layer_norm_eps": "small"}, "layer_norm_eps is 'small'"),
    ],
)
def test_settings_that_do_not_fit_are_named(folder: Path, changes: dict[str, Any], message: str) -> None:
    change_json(folder / "config.json", **changes)
    check_rejected(folder, message)


def change_library(path: Path, part: str, **changes: Any) -> None:
    content = json.loads(path.read_text())
    content[part].update(changes)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: change_json(folder / "tokenizer_config.json", do_lower_case=False), "do_lower_case is False"),
        (lambda folder: change_json(folder / "tokenizer_config.json", strip_accents=False), "strip_accents is False"),
        (lambda folder: change_json(folder / "tokenizer_config.json", cls_token="<s>"), r"cls_token must be \[CLS\]"),
        (lambda folder: change_json(folder / "tokenizer_config.json", never_split=["a"]), "never_split"),
        (lambda folder: change_library(folder / "tokenizer.json", "normalizer", type="NFC"), "normalizer.type must be"),
        (lambda folder: change_library(folder / "tokenizer.json", "model", type="BPE"), "model.type must be WordPiece"),
        (
            lambda folder: change_json(folder / "tokenizer.json", added_tokens=[{"id": 102, "content": "[NEW]"}]),
            r"'\[NEW\]' was added",
        ),
        (
            lambda folder: (folder / "vocab.txt").write_text("\n".join([*VOCABULARY[:-2], *VOCABULARY[:-3:-1]]) + "\n"),
            "contain different vocabularies, for example the entry",
        ),
        (lambda folder: (folder / "vocab.txt").write_text("\n".join([*VOCABULARY, "the"])), "line 103: .*'the'.*twice"),
        (lambda folder: (folder / "vocab.txt").write_bytes(b"\xff\n"), "not valid UTF-8"),
        (lambda folder: [(folder / name).unlink() for name in ("vocab.txt", "tokenizer.json")], "are missing"),
        (lambda folder: (folder / PARAMETERS).unlink(), "model.safetensors is missing"),
    ],
)
def test_files_that_disagree_are_rejected(folder: Path, change: Any, message: str) -> None:
    change(folder)
    check_rejected(folder, message)


def test_one_vocabulary_file_suffices(folder: Path, tmp_path: Path) -> None:
    import_model(folder, tmp_path / "both")
    (folder / "vocab.txt").unlink()
    import_model(folder, tmp_path / "library")
    (folder / "vocab.txt").write_text("".join(f"{entry}\n" for entry in VOCABULARY))
    (folder / "tokenizer.json").unlink()
    import_model(folder, tmp_path / "list")
    expected = (tmp_path / "both" / "tokenizer.json").read_bytes()
    assert all((tmp_path / name / "tokenizer.json").read_bytes() == expected for name in ("library", "list"))


def test_parts_that_the_class_does_not_use_are_reported(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    change_tensors(folder, lambda tensors: tensors.update({"cls.seq_relationship.bias": torch.zeros(2)}))
    import_model(folder, tmp_path / "out")
    assert "does not use the tensors cls.seq_relationship.bias" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("norm: post", "norm: pre", "model.encoder.norm is pre, but BERT uses post"),
        ("pooling: first", "pooling: max", "model.head.pooling is max, but BERT uses first"),
        ("scale_embeddings: false", "scale_embeddings: true", "model.scale_embeddings is true, but BERT uses false"),
        ("activation: gelu", "activation: swiglu", "model.encoder.activation is swiglu, but BERT uses gelu"),
        ("segments: 2", "segments: 0", "model.segments is 0, but BERT uses 1"),
    ],
)
def test_settings_that_bert_lacks_are_named(folder: Path, tmp_path: Path, old: str, new: str, message: str) -> None:
    import_model(folder, tmp_path / "ours")
    config = tmp_path / "ours" / "config.yaml"
    text = config.read_text()
    assert text.count(old) == 1
    config.write_text(text.replace(old, new))
    with pytest.raises(ModelError, match=message):
        export(tmp_path / "ours", tmp_path / "out", "bert")
    assert not (tmp_path / "out").exists()


def test_other_kinds_of_models_are_not_exported(folder: Path, tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "translator")
    with pytest.raises(ModelError, match="is a translation model, but the format bert is for prediction models: use"):
        export(tmp_path / "translator", tmp_path / "out", "bert")
    import_model(folder, tmp_path / "ours")
    for name in ("marian", "ctranslate2"):
        with pytest.raises(ModelError, match=f"the format {name} is for translation models: use --to bert"):
            export(tmp_path / "ours", tmp_path / "out", name)
    with pytest.raises(ConfigError, match="quantization"):
        export(tmp_path / "ours", tmp_path / "out", "bert", quantization="int8")


def test_the_command_line_imports_and_exports(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ours, out = str(tmp_path / "ours"), str(tmp_path / "out")
    assert main(["import", str(folder), "--out", ours]) == 0
    assert "dragoman predict" in capfd.readouterr().err
    assert main(["export", ours, "--to", "bert", "--out", out]) == 0
    assert (tmp_path / "out" / PARAMETERS).is_file()
    assert "SHA-256" in (tmp_path / "ours" / "README.md").read_text()
    assert "\nlibrary_name: transformers\n" in (tmp_path / "out" / "README.md").read_text()
    change_tensors(folder, lambda tensors: tensors.pop(QUERY))
    assert main(["import", str(folder), "--out", str(tmp_path / "damaged")]) == 1
    error = capfd.readouterr().err
    assert QUERY in error and "Traceback" not in error
