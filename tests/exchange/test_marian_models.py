"""Models imported from Marian are used, trained and exported like any other; trained models are exported, too."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from marian_folders import lines, their_model, their_tokenizer, write_marian
from tiny_model import write_tiny_model
from training_runs import SETTINGS, write_corpus

from dragoman.base.errors import DragomanError
from dragoman.base.settings.load import load_settings
from dragoman.base.settings.yaml import parse_yaml
from dragoman.checkpoint.folder import load_model_folder, read_config, read_meta
from dragoman.checkpoint.tensors import load_tensors, model_parameters
from dragoman.cli.main import main
from dragoman.decode.search import SearchConfig
from dragoman.engines.registry import ENGINES
from dragoman.exchange.formats import export, import_model
from dragoman.exchange.huggingface.generation import generation_json
from dragoman.inference.translation.translator import Translator
from dragoman.tasks.train import train
from dragoman.tasks.translation.config import TranslationRun
from dragoman.text.vocabularies.sentencepiece import SentencePieceTokenizer

pytest.importorskip("transformers")
pytest.importorskip("sentencepiece")

SIDES = (("source", "a"), ("target", "b"))
CORPUS = [f"data.{part}.{side}={part}.{end}" for part in ("train", "valid") for side, end in SIDES]
LOOP = [each for each in SETTINGS if not each.startswith(("model.", "text."))]
SHORT = [*LOOP, "train.max_steps=3", "train.validate_every=3", "train.checkpoint_every=3", "train.average.count=0"]
STACK = {"layers": 2, "heads": 2, "feedforward": 24}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a corpus, `theirs`, a Hugging Face model with two languages, and `ours`, imported from it."""
    folder, threads = tmp_path_factory.mktemp("models"), torch.get_num_threads()
    write_marian(folder / "theirs", codes=(">>de<<", ">>fr<<"), ends=0.0, seed=5)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_corpus(folder, 40)
        assert main(["import", "theirs", "--out", "ours"]) == 0
        yield folder
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def _inside(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)


def test_the_command_line_translates_with_an_imported_model(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (root / "texts").write_text("\n".join(lines("source")[:4]) + "\n\n", encoding="utf-8")
    assert main(["translate", "ours", "--to", "fr", "-i", "texts", "--no-divide", "--threads", "1"]) == 0
    out = capfd.readouterr().out.split("\n")
    tokenizer = their_tokenizer(root / "theirs")
    given = tokenizer([f">>fr<<{text}" for text in lines("source")[:4]], return_tensors="pt", padding=True)
    never = [[tokenizer.convert_tokens_to_ids(symbol)] for symbol in ("<pad>", "<unk>", ">>de<<", ">>fr<<")]
    expected = their_model(root / "theirs").generate(**given, bad_words_ids=never, early_stopping="never")
    assert out[4:] == ["", ""]
    assert out[:4] == tokenizer.batch_decode(expected, skip_special_tokens=True)
    assert main(["translate", "ours", "-i", "texts"]) == 2
    assert "choose one with --to (in Python, to=): de, fr" in " ".join(capfd.readouterr().err.split())


def test_an_imported_model_is_described_scored_and_averaged(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "ours"]) == 0
    assert "one vocabulary of" in capfd.readouterr().out
    assert main(["score", "ours", "--to", "de", "--source", "valid.a", "--target", "valid.b"]) == 0
    assert len(capfd.readouterr().out.split()) == 8
    assert main(["average", "ours", "ours", "--out", "mean"]) == 0
    one, other = (load_tensors(Path(each) / "model.safetensors")[0] for each in ("ours", "mean"))
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())
    meta = read_meta(Path("ours"))
    assert (meta.source_language, meta.target_language, meta.target_languages) == ("en", "de", ("de", "fr"))


def test_generation_settings_become_search_settings(root: Path) -> None:
    search = read_config(root / "ours")["search"]
    assert (search["beam"], search["length_penalty"]) == (4, {"kind": "mean"})
    assert (search["length_factor"], search["length_margin"]) == (0.0, 47)
    assert Translator.load(root / "ours", "cpu").search_config().beam == 4


def settings(*given: str, out: str) -> TranslationRun:
    return load_settings(None, [*CORPUS, f"out={out}", *SHORT, *given], TranslationRun)


def hugging_face_agrees(folder: Path, theirs: Path, code: str = "") -> None:
    """Compare the scores of a pair, token by token."""
    translator = Translator.load(folder, "cpu")
    text, target = "the dog sees", "ein Hund"
    found = translator.score([text], [target], to=code or None)[0].log_probability
    tokenizer, model = their_tokenizer(theirs), their_model(theirs)
    given = tokenizer(f">>{code}<<{text}" if code else text, text_target=target, return_tensors="pt")
    with torch.no_grad():
        logits = model(**given).logits[0].log_softmax(-1)
    expected = logits.gather(1, given["labels"][0][:, None]).sum()
    assert found == pytest.approx(float(expected), rel=1e-4)


def test_an_imported_model_is_trained_with_a_new_tag_and_exported() -> None:
    for_tag = ["data.train.target_language=de", "data.valid.target_language=de", "data.train.tags=[bt]"]
    train(settings("train.start=ours", *for_tag, "train.objective.label_smoothing=0", out="further"))
    before, after = (load_tensors(Path(each) / "model.safetensors")[0] for each in ("ours", "further"))
    assert before.keys() == after.keys()
    assert not torch.equal(before["decoder.projection.bias"], after["decoder.projection.bias"][:-1])
    again = Translator.load("further", "cpu")
    assert again.tokenizers.tags == ("to:de", "to:fr", "bt")
    assert again.tokenizers.source.size == again.tokenizers.target.size == len(after["decoder.projection.bias"])
    assert read_config(Path("further"))["text"]["subword"]["kind"] == "sentencepiece"
    assert main(["export", "further", "--to", "marian", "--out", "back"]) == 0
    hugging_face_agrees(Path("further"), Path("back"), "de")
    symbols = json.loads(Path("back/vocab.json").read_text())
    assert {**json.loads(Path("theirs/vocab.json").read_text()), ">>bt<<": len(symbols) - 1} == symbols


OWN: dict[str, tuple[bool, dict[str, Any]]] = {
    "tied": (True, {}),
    "untied": (True, {"projection_bias": True, "tie_projection": False}),
    "apart": (False, {"scale_embeddings": False}),
}


@pytest.mark.parametrize(
    "name", ["tied", *(pytest.param(name, marks=pytest.mark.slow) for name in ("untied", "apart"))]
)
def test_a_trained_model_survives_export_and_import(root: Path, name: str) -> None:
    shared, model = OWN[name]
    positions = {"kind": "sinusoidal", "layout": "halves"}
    section = {"preset": None, "width": 16, "positions": positions, "encoder": STACK, "decoder": STACK, **model}
    text = {"subword": {"kind": "sentencepiece", "size": 60}, "shared": shared}
    out = [f"model={json.dumps(section)}", f"text={json.dumps(text)}"]
    train(settings(*out, out=name))
    export(root / name, root / f"{name}, theirs", "marian")
    hugging_face_agrees(root / name, root / f"{name}, theirs")
    import_model(root / f"{name}, theirs", root / f"{name}, again")
    one, other = (load_model_folder(root / each, torch.device("cpu")) for each in (name, f"{name}, again"))
    assert one.tokenizers.fingerprint == other.tokenizers.fingerprint
    assert isinstance(one.tokenizers.source, SentencePieceTokenizer)
    for key, tensor in model_parameters(one.model).items():
        assert torch.equal(tensor, model_parameters(other.model)[key]), key


def test_settings_that_marian_lacks_are_named(tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import_model(root / "theirs", tmp_path / "changed")
    config = tmp_path / "changed" / "config.yaml"
    content = parse_yaml(config.read_text(), "config").content
    content["model"]["encoder"] |= {"norm": "pre", "activation": "swiglu", "residual": False}
    content["model"]["decoder"]["attention"] |= {"kind": "window"}
    content["model"]["positions"] = {"kind": "rotary"}
    config.write_text(json.dumps(content))
    assert main(["export", str(tmp_path / "changed"), "--to", "marian", "--out", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    for part in (
        "encoder.norm is pre",
        "activation is swiglu",
        "residual is false",
        "kind is window",
        "kind is rotary",
    ):
        assert part in said
    assert not (tmp_path / "out").exists()
    assert main(["export", "ours", "--to", "marian", "--out", "theirs"]) == 2
    assert "already exists" in capsys.readouterr().err
    assert main(["export", "ours", "--to", "marian", "--out", "new", "--quantization", "int8"]) == 2
    assert "--quantization can only be used with --to ctranslate2" in capsys.readouterr().err


@pytest.mark.parametrize("engine", [kind.name for kind in ENGINES])
def test_all_engines_agree_or_refuse(root: Path, engine: str) -> None:
    """For a model with a projection bias, swish, unscaled embeddings and sines before cosines."""
    texts = lines("source")[:6]
    beam = 1 if engine == "ctranslate2" else None  # its beam search differs
    expected = Translator.load(root / "ours", "cpu", engine="torch").translate(texts, to="fr", beam=beam)
    try:
        found = Translator.load(root / "ours", "cpu", engine=engine).translate(texts, to="fr", beam=beam)
    except DragomanError as error:
        pytest.skip(f"refused, as it may be: {error}")
    assert found == expected


def test_other_vocabularies_are_not_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tiny_model(tmp_path / "tiny")
    assert main(["export", str(tmp_path / "tiny"), "--to", "marian", "--out", str(tmp_path / "out")]) == 1
    assert "text.subword.kind=sentencepiece" in " ".join(capsys.readouterr().err.split())


def test_search_settings_become_generation_settings(capsys: pytest.CaptureFixture[str]) -> None:
    search = {"length_penalty": "mean", "maximum_length": 20, "minimum_length": 3, "no_repeat_ngram": 2}
    plain = SearchConfig.model_validate(search)
    found = generation_json(plain, 48, [])
    assert (found["max_length"], found["min_length"], found["no_repeat_ngram_size"]) == (21, 4, 2)
    assert not capsys.readouterr().err
    generation_json(plain.model_copy(update={"shrinking": True, "minimum_factor": 0.5}), 48, [])
    assert "search.minimum_factor, search.shrinking" in " ".join(capsys.readouterr().err.split())
