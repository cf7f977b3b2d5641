"""Which engine translates, and what is said where it cannot."""

from pathlib import Path

import pytest
import torch
from tiny_model import SOURCES, tiny_config, write_tiny_model

from dragoman import Translator
from dragoman.base.errors import ConfigError, ModelError
from dragoman.cli.main import main
from dragoman.translation.choice import ENGINES
from dragoman.translation.engine import AttentionEngine
from dragoman.translation.engines.ctranslate2 import CTranslate2Engine
from dragoman.translation.engines.preferred import PreferredEngine
from dragoman.translation.engines.torch import TorchEngine

pytest.importorskip("ctranslate2")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    write_tiny_model(folder)
    return folder


def test_auto_is_the_reference_unless_int8_is_allowed(model: Path) -> None:
    assert isinstance(Translator.load(model).engine, TorchEngine)
    assert isinstance(Translator.load(model, precision="float32").engine, TorchEngine)
    chosen = Translator.load(model, precision="int8").engine
    assert isinstance(chosen, PreferredEngine)
    assert isinstance(chosen.preferred, CTranslate2Engine)
    assert isinstance(chosen, AttentionEngine)
    assert isinstance(Translator.load(model, engine="ctranslate2").engine, CTranslate2Engine)
    assert ENGINES[-1].name == "torch"


def test_an_engine_is_left_where_it_must_be_and_this_is_said_once(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    translator = Translator.load(model, precision="int8")
    wanted = [translator.request(coverage_penalty=penalty) for penalty in (0.0, 0.3, 0.0)]
    found = [translator.translate(SOURCES, requests=wanted) for _ in range(2)]
    assert found[0] == found[1]
    assert found[0][1] == Translator.load(model).translate(SOURCES, requests=wanted)[1]
    assert capsys.readouterr().err.count("coverage") == 1
    assert translator.attention(SOURCES[0])


def test_an_engine_that_was_asked_for_refuses(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["translate", str(model), "--engine", "ctranslate2", "-i", str(model / "README.md")]
    assert main([*arguments, "--sample"]) == 2
    assert "--engine torch" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="does not show what its model attends"):
        Translator.load(model, engine="ctranslate2").attention(SOURCES[0])


def test_a_model_that_no_fast_engine_computes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tiny_model(tmp_path / "alibi", config=tiny_config(positions={"kind": "alibi"}))
    with pytest.raises(ModelError, match="alibi"):
        Translator.load(tmp_path / "alibi", engine="ctranslate2")
    assert isinstance(Translator.load(tmp_path / "alibi", precision="int8").engine, TorchEngine)
    assert "computing in float32" in capsys.readouterr().err


def test_without_the_package(model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ctranslate2", None)
    with pytest.raises(ConfigError, match=r"pip install 'dragoman\[fast\]'"):
        Translator.load(model, engine="ctranslate2")
    assert isinstance(Translator.load(model, precision="int8").engine, TorchEngine)
    assert "dragoman[fast]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("engine", "precision", "message"),
    [
        ("torch", "int8", "does not compute in int8: choose ctranslate2"),
        ("tensor", None, "there is no engine 'tensor': use auto, ctranslate2, torch"),
        ("auto", "int4", "there is no precision 'int4'"),
    ],
)
def test_names_that_are_none(model: Path, engine: str, precision: str | None, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Translator.load(model, engine=engine, precision=precision)


def test_an_exported_folder_has_one_engine(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "exported"
    assert main(["export", str(model), "--to", "ctranslate2", "--out", str(out), "--quantization", "int8"]) == 0
    with pytest.raises(ConfigError, match="give the model folder"):
        Translator.load(out, engine="torch")
    assert Translator.load(out, engine="ctranslate2", precision="float32").translate(SOURCES)
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="cannot be used here"):
            Translator.load(out, "cuda")
