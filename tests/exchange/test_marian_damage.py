"""Hugging Face folders that are damaged, foreign or hostile are reported, and nothing is written."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from marian_folders import write_marian
from safetensors.torch import load_file, save_file

from dragoman.base.errors import ConfigError, DragomanError, ModelError
from dragoman.checkpoint.tensors import load_tensors
from dragoman.exchange.formats import import_model
from dragoman.nn.positions.sinusoidal import sinusoids

pytest.importorskip("transformers")
pytest.importorskip("sentencepiece")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "original"
    write_marian(folder)
    return folder


@pytest.fixture
def original(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "original"))


Damage = Callable[[Path], object]


def changed(path: Path, **changes: Any) -> None:
    """Change values of a JSON object; None removes the key."""
    content = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))


def config(**changes: Any) -> Damage:
    return lambda folder: changed(folder / "config.json", **changes)


def tokenizer(**changes: Any) -> Damage:
    return lambda folder: changed(folder / "tokenizer_config.json", **changes)


def tensors(change: Callable[[dict[str, torch.Tensor]], Any]) -> Damage:
    def apply(folder: Path) -> None:
        held = load_file(folder / "model.safetensors")
        change(held)
        save_file(held, folder / "model.safetensors")

    return apply


def without(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


def written(name: str, content: str | bytes) -> Damage:
    data = content.encode() if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(data)


FC1 = "model.encoder.layers.0.fc1.weight"
DAMAGES: dict[str, tuple[Damage, str]] = {
    "mbart": (config(model_type="mbart"), r"type 'mbart', but only marian"),
    "no type": (config(model_type=None), r"type None"),
    "bart without its files": (
        lambda folder: (without("vocab.json")(folder), config(model_type="mt5")(folder)),
        "'mt5'",
    ),
    "pre-norm": (config(normalize_before=True), r"normalize_before is True"),
    "embedding norm": (config(normalize_embedding=True), r"normalize_embedding is True"),
    "learned positions": (config(static_position_embeddings=False), r"static_position_embeddings is False"),
    "activation": (config(activation_function="gelu_new"), r"unknown activation_function 'gelu_new' \(supported: relu"),
    "positions without end": (config(max_position_embeddings=10**12, d_model=8), r"wrong shape"),
    "heads": (config(encoder_attention_heads=3), r"describes a model that cannot be built"),
    "text for a number": (config(d_model="16"), r"d_model is '16'"),
    "quantised": (config(quantization_config={"bits": 8}), r"quantised"),
    "a million layers": (config(encoder_layers=10**9), r"far fewer parameters than the layers"),
    "a billion wide": (config(d_model=10**9), r"wrong shape"),
    "another start": (config(decoder_start_token_id=5), r"decoder_start_token_id 5 is neither <pad> nor <s>"),
    "another end": (config(eos_token_id=1), r"has </s> at 0, but .* has eos_token_id 1"),
    "several ends": (config(eos_token_id=[0, 1]), r"eos_token_id"),
    "fewer rows": (config(vocab_size=9, decoder_vocab_size=9), r"entries, but the embeddings in .* have 9 rows"),
    "sizes apart": (config(decoder_vocab_size=99), r"separate_vocabs in tokenizer_config.json is false"),
    "no JSON": (written("config.json", "{"), r"cannot be read as JSON"),
    "a list": (written("vocab.json", "[]"), r"must contain an object"),
    "vocabulary of text": (lambda folder: changed(folder / "vocab.json", **{"</s>": "0"}), r"map each entry to"),
    "ids twice": (lambda folder: changed(folder / "vocab.json", **{"</s>": 1}), r"from 0 to \d+ without gaps"),
    "an entry more": (lambda folder: changed(folder / "vocab.json", more=82), r"\d+ entries, but the embeddings"),
    "no source.spm": (without("source.spm"), r"source\.spm missing"),
    "spm": (written("target.spm", b"garbage"), r"target\.spm is damaged: not a SentencePiece model"),
    "empty spm": (written("source.spm", b""), r"source\.spm is damaged"),
    "other symbols": (tokenizer(eos_token="<end>"), r"eos_token must be </s>, not '<end>'"),
    "two vocabularies": (tokenizer(separate_vocabs=True), r"cannot share an embedding table"),
    "sampling": (tokenizer(sp_model_kwargs={"enable_sampling": True}), r"sp_model_kwargs"),
    "added": (written("added_tokens.json", '{"<ent>": 90}'), r"added to the tokenizer .*<ent>"),
    "no parameters": (without("model.safetensors"), r"has no parameters"),
    "cut off": (lambda folder: _cut(folder / "model.safetensors"), r"damaged or not a safetensors"),
    "missing": (tensors(lambda held: held.pop(FC1)), r"missing: " + FC1),
    "unknown": (tensors(lambda held: held.update(extra=torch.zeros(1))), r"unknown: extra"),
    "shape": (tensors(lambda held: held.update({FC1: torch.zeros(3, 3)})), r"wrong shape: " + FC1),
    "integers": (tensors(lambda held: held.update({FC1: held[FC1].int()})), r"wrong type: " + FC1),
    "not tied": (
        tensors(lambda held: held.update({"lm_head.weight": 1 - held["model.shared.weight"]})),
        r"lm_head.weight differs from the table",
    ),
    "other positions": (
        tensors(lambda held: held.update({"model.decoder.embed_positions.weight": torch.zeros(48, 16)})),
        r"positions that are not sines",
    ),
    "no beams": (lambda folder: changed(folder / "generation_config.json", num_beams=0), r"beam"),
    "bad words": (lambda folder: changed(folder / "generation_config.json", bad_words_ids=[[999]]), r"token 999"),
    "bad lists": (lambda folder: changed(folder / "generation_config.json", bad_words_ids="x"), r"list of lists"),
}


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_reported_and_nothing_is_written(original: Path, tmp_path: Path, name: str) -> None:
    damage, message = DAMAGES[name]
    damage(original)
    with pytest.raises(ModelError, match=message):
        import_model(original, tmp_path / "ours")
    assert [path.name for path in tmp_path.iterdir()] == ["original"]


def test_other_folders_are_refused(original: Path, tmp_path: Path) -> None:
    for folder, message in ((tmp_path / "none", "does not exist"), (tmp_path, "config.json is missing")):
        with pytest.raises(ModelError, match=message):
            import_model(folder, tmp_path / "ours")
    with pytest.raises(ConfigError, match="already exists"):
        import_model(original, original)
    import_model(original, tmp_path / "ours")
    with pytest.raises(ModelError, match="already a dragoman model folder"):
        import_model(tmp_path / "ours", tmp_path / "again")


def test_stored_sinusoids_are_recognised(original: Path, tmp_path: Path) -> None:
    """Stored in older folders, under every name of tied tables."""
    import_model(original, tmp_path / "before")
    held = load_file(original / "model.safetensors")
    table = held["model.shared.weight"]
    names = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
    sines = sinusoids(48, 16, layout="halves")
    stored = {f"model.{side}.embed_positions.weight": sines.clone() for side in ("encoder", "decoder")}
    save_file({**held, **{name: table.clone() for name in names}, **stored}, original / "model.safetensors")
    import_model(original, tmp_path / "after")
    name = "model.safetensors"
    assert (tmp_path / "before" / name).read_bytes() == (tmp_path / "after" / name).read_bytes()


def test_a_pickle_is_read_only_on_request(original: Path, tmp_path: Path) -> None:
    import_model(original, tmp_path / "before")
    torch.save(load_file(original / "model.safetensors"), original / "pytorch_model.bin")
    (original / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"only as a pickle .* use --allow-pickle"):
        import_model(original, tmp_path / "ours")
    import_model(original, tmp_path / "ours", allow_pickle=True)
    one, other = (load_tensors(tmp_path / each / "model.safetensors")[0] for each in ("before", "ours"))
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())


class Hostile:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return exec, ("import pathlib; pathlib.Path('hacked').touch()",)


@pytest.mark.parametrize("content", [{"a": Hostile()}, [torch.zeros(2)], {"a": 3}], ids=["code", "list", "number"])
def test_a_pickle_of_anything_but_tensors_is_refused(
    original: Path, tmp_path: Path, content: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save(content, original / "pytorch_model.bin")
    (original / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"tensors"):
        import_model(original, tmp_path / "ours", allow_pickle=True)
    assert [path.name for path in tmp_path.iterdir()] == ["original"]


def test_without_sentencepiece_the_extra_is_named(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(DragomanError, match=r'pip install "dragoman\[hf\]"'):
        import_model(original, tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


def test_unsupported_settings_are_reported(original: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed(original / "config.json", encoder_layerdrop=0.1)
    asked = {"length_penalty": 0.7, "repetition_penalty": 1.3, "bad_words_ids": [[7, 8], [9]], "min_length": 4}
    changed(original / "generation_config.json", **asked, max_length=999, no_repeat_ngram_size=3)
    import_model(original, tmp_path / "ours")
    said = " ".join(capsys.readouterr().err.split())
    for part in ("layer drop", "length_penalty 0.7", "repetition_penalty 1.3", "such as [7, 8]"):
        assert part in said
    search = (tmp_path / "ours" / "config.yaml").read_text().split("search:")[1]
    assert "length_margin: 47" in search
    assert "minimum_length: 3" in search
    assert "no_repeat_ngram: 3" in search
    assert search.split("forbid:")[1].split("force_start")[0].split() == ["-", "0", "-", "1", "-", "3", "-", "11"]
