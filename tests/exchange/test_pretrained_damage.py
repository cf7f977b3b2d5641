"""Folders of GPT-2, BART and T5 that are damaged, inconsistent or unsupported are rejected by name."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from bart_folders import write_bart
from gpt2_folders import write_gpt2
from t5_folders import write_t5
from tiny_model import write_tiny_model

from dragoman.base.errors import ModelError
from dragoman.exchange.formats import export, import_model

WRITERS = {"gpt2": write_gpt2, "bart": write_bart, "t5": write_t5}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pretrained")
    for family, write in WRITERS.items():
        write(root / family)
    return root


def changed(name: str, *path: Any, to: Any) -> Any:
    """Return a change of one value of a JSON file."""

    def change(folder: Path) -> None:
        content = json.loads((folder / name).read_text())
        inner = content
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = to
        (folder / name).write_text(json.dumps(content))

    return change


def without(name: str) -> Any:
    return lambda folder: (folder / name).unlink()


CONFIG, LIBRARY, ABOUT = "config.json", "tokenizer.json", "tokenizer_config.json"
DAMAGE: list[tuple[str, Any, str | None]] = [
    ("gpt2", changed(CONFIG, "n_layer", to=3), "missing: transformer.h.2"),
    ("gpt2", changed(CONFIG, "n_layer", to=1), "unknown: transformer.h.1"),
    ("gpt2", changed(CONFIG, "activation_function", to="mish"), "unknown activation_function 'mish'"),
    ("gpt2", changed(CONFIG, "scale_attn_by_inverse_layer_idx", to=True), "scale_attn_by_inverse_layer_idx is True"),
    ("gpt2", changed(CONFIG, "architectures", to=["GPT2ForSequenceClassification"]), "are not supported"),
    ("gpt2", changed(CONFIG, "eos_token_id", to=5), "eos_token_id in config.json is 5"),
    ("gpt2", changed(CONFIG, "vocab_size", to=9), "but the embeddings in config.json have 9 rows"),
    ("gpt2", changed(LIBRARY, "model", "type", to="WordPiece"), "model.type must be 'BPE'"),
    ("gpt2", changed(LIBRARY, "normalizer", to={"type": "Lowercase"}), "normalizer.type must be NFC"),
    ("gpt2", changed(LIBRARY, "model", "merges", 0, to=["a", "b", "c"]), "pairs of symbols"),
    ("gpt2", changed(LIBRARY, "model", "merges", 0, to=["a", "b"]), "contain different merges"),
    ("gpt2", changed(LIBRARY, "added_tokens", 0, "special", to=False), None),
    ("gpt2", changed(LIBRARY, "added_tokens", 0, "id", to="x"), "each needs an id"),
    ("gpt2", changed("vocab.json", "zzz", to=1), "contain different vocabularies, for example the entry 'zzz'"),
    ("gpt2", changed(ABOUT, "add_prefix_space", to=True), "add_prefix_space=true is not supported"),
    ("gpt2", changed(ABOUT, "eos_token", to="<end>"), "no special symbol '<end>'"),
    ("gpt2", without("model.safetensors"), "model.safetensors is missing"),
    ("bart", changed(CONFIG, "pad_token_id", to=2), "<pad> has the id 1, but pad_token_id in config.json is 2"),
    ("bart", changed("generation_config.json", "forced_bos_token_id", to=9), "forced_bos_token_id is 9"),
    ("bart", changed(CONFIG, "static_position_embeddings", to=True), "static_position_embeddings is True"),
    ("t5", changed(CONFIG, "feed_forward_proj", to="gated-relu"), "unknown feed_forward_proj 'gated-relu'"),
    ("t5", changed(CONFIG, "decoder_start_token_id", to=7), "decoder_start_token_id is 7"),
    ("t5", changed(CONFIG, "relative_attention_num_buckets", to=30), "relative_attention_bias.weight is"),
    ("t5", changed(CONFIG, "eos_token_id", to=4), "has </s> at 1, but eos_token_id in config.json is 4"),
    ("t5", changed(LIBRARY, "model", "type", to="BPE"), "model.type must be Unigram"),
    ("t5", changed(LIBRARY, "pre_tokenizer", to={"type": "Nonsense"}), "the tokenizer is not supported"),
    ("t5", without(LIBRARY), "has no tokenizer.json"),
]


@pytest.mark.parametrize(("family", "change", "message"), DAMAGE, ids=[f"{each[0]}: {each[2]}" for each in DAMAGE])
def test_damage_is_named_and_nothing_is_written(
    root: Path, tmp_path: Path, family: str, change: Any, message: str | None
) -> None:
    shutil.copytree(root / family, tmp_path / "copy")
    change(tmp_path / "copy")
    if message is None:  # a symbol with a role need not be marked as special
        import_model(tmp_path / "copy", tmp_path / "out", quiet=True)
        return
    with pytest.raises(ModelError, match=message):
        import_model(tmp_path / "copy", tmp_path / "out", quiet=True)
    assert not (tmp_path / "out").exists()


def test_models_that_a_family_cannot_express_are_refused(root: Path, tmp_path: Path) -> None:
    import_model(root / "bart", tmp_path / "bart", quiet=True)
    for family in ("marian", "t5"):
        with pytest.raises(ModelError, match="has a gpt2 vocabulary"):
            export(tmp_path / "bart", tmp_path / "out", family, quiet=True)
    with pytest.raises(ModelError, match="is a translation model, but the format gpt2 is for language models"):
        export(tmp_path / "bart", tmp_path / "out", "gpt2", quiet=True)
    config = tmp_path / "bart" / "config.yaml"
    config.write_text(config.read_text().replace("norm: post", "norm: pre"))
    with pytest.raises(ModelError) as error:
        export(tmp_path / "bart", tmp_path / "out", "huggingface", quiet=True)
    assert "model.encoder.norm is pre, but BART uses post" in str(error.value)
    write_tiny_model(tmp_path / "tiny")
    with pytest.raises(ModelError, match="vocabulary"):
        export(tmp_path / "tiny", tmp_path / "out", "huggingface", quiet=True)
    assert not (tmp_path / "out").exists()
