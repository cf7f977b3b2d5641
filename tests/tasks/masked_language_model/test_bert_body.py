"""Fine-tuning of a body without a head: what is copied, and that its vocabulary and settings are kept."""

from pathlib import Path

import pytest
import torch
from closeness import assert_close, close_to
from sampled_texts import write_classes
from training_runs import MACHINE

from dragoman import Predictor, train
from dragoman.base.settings.load import dump_settings
from dragoman.checkpoint.folder import load_model_folder, write_model_folder
from dragoman.checkpoint.meta import Meta
from dragoman.checkpoint.tensors import model_parameters
from dragoman.exchange.formats import export, import_model
from dragoman.models.kinds.encoder_only import EncoderOnlyConfig
from dragoman.text.tokenizers import Tokenizers
from dragoman.text.vocabularies.bert import BertTokenizer, BertWordPieceConfig

NORM = {"kind": "layer", "epsilon": 1e-12}
STACK = {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 32, "activation": "gelu", "normalisation": NORM}
BODY = {
    "preset": None,
    "width": 16,
    "encoder": STACK,
    "positions": {"kind": "learned", "limit": 40},
    "segments": 2,
    "scale_embeddings": False,
    "embedding_norm": NORM,
    "head": {"kind": "none", "hidden": True},
}


@pytest.fixture(scope="module")
def body(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A body with BERT's structure, as `import` writes it."""
    tokenizer = BertWordPieceConfig(size=90).learn(["the a my old dog cat horse soup bread cake"] * 3)
    tokenizers = Tokenizers(tokenizer, tokenizer).with_tags(["mask"])
    config = EncoderOnlyConfig.model_validate(BODY)
    torch.manual_seed(1)
    parameters = model_parameters(config.build_for(tokenizers.sizes))
    parameters["head.hidden.bias"].data.fill_(0.25)
    settings = "model:\n" + "".join(f"  {line}\n" for line in dump_settings(config).splitlines())
    text = "text: {subword: {kind: bert, size: 90}}\n"
    folder = tmp_path_factory.mktemp("bert") / "body"
    write_model_folder(folder, parameters, settings + text, tokenizers, Meta(step=0))
    return folder


def test_a_body_is_trained_with_a_head_and_exported(
    body: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    recipe = {
        "task": {"kind": "classification"},
        "data": {
            "train": str(write_classes(tmp_path / "a.tsv", 120, 1)),
            "valid": str(write_classes(tmp_path / "v.tsv", 20, 2)),
        },
        "model": {"head": {"hidden": True, "pooling": "first"}},
        "train": {**MACHINE, "start": str(body), "max_steps": 40, "validate_every": 40},
        "out": str(tmp_path / "run"),
    }
    train(recipe)
    log = capfd.readouterr().err
    assert "copied encoder.embedding, encoder, head" in log and "parameters of head (head.output" in log
    trained = Predictor.load(tmp_path / "run")
    assert isinstance(trained.tokenizer, BertTokenizer) and trained.tokenizer.tags == ("mask",)
    assert trained.predict("my old horse")[0].as_json()["label"] == "Tier, groß"
    export(tmp_path / "run", tmp_path / "out", "bert")
    import_model(tmp_path / "out", tmp_path / "again")
    again = Predictor.load(tmp_path / "again")
    assert again.labels == trained.labels
    texts = ["the old dog", "a cake", ""]
    for one, other in zip(again.predict(texts), trained.predict(texts), strict=True):
        assert one.as_json()["probabilities"] == close_to(other.as_json()["probabilities"])


def test_the_pooler_initialises_the_hidden_layer(body: Path, tmp_path: Path) -> None:
    still = {**MACHINE, "schedule": {"kind": "constant", "peak": 1e-12}}
    recipe = {
        "task": {"kind": "regression"},
        "data": {"train": str(write_classes(tmp_path / "a.tsv", 20, 1, ("1", "2"))), "valid": str(tmp_path / "a.tsv")},
        "model": {"head": {"kind": "regression", "hidden": True, "pooling": "first"}},
        "train": {**still, "start": str(body), "max_steps": 1, "validate_every": 1},
        "out": str(tmp_path / "run"),
    }
    train(recipe, quiet=True)
    before, after = (load_model_folder(each, torch.device("cpu")).model for each in (body, tmp_path / "run"))
    assert_close(after.head.hidden.weight, before.head.hidden.weight)
    assert_close(after.head.hidden.bias, before.head.hidden.bias)
