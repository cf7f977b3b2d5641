"""The choice of an engine, and the messages if it does not support a model or a request."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_model import SOURCES, tiny_config, write_tiny_model

from dragoman import Translator, inspect
from dragoman.base.errors import ConfigError, ModelError, ResourceError
from dragoman.base.packages import check_import
from dragoman.checkpoint.folder import LoadedModel, load_model_folder
from dragoman.cli.main import main
from dragoman.engines import choice as choices
from dragoman.engines import opening, registry
from dragoman.engines.choice import EngineChoice
from dragoman.engines.ctranslate2 import CTranslate2Engine
from dragoman.engines.cuda.engine import CudaEngine
from dragoman.engines.engine import AttentionEngine, ContinuousEngine, Engine
from dragoman.engines.native.engine import NativeEngine
from dragoman.engines.opening import translation_engine
from dragoman.engines.registry import ENGINES
from dragoman.engines.router import Router
from dragoman.engines.torch.engine import TorchEngine
from dragoman.native.build import NoCompilerError

pytest.importorskip("ctranslate2")

CPU = torch.device("cpu")


def engine_of(loaded: LoadedModel, device: torch.device, name: str = "auto", precision: str | None = None) -> Engine:
    return translation_engine(loaded, device, EngineChoice(name=name, precision=precision))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    write_tiny_model(folder)
    return folder


def test_auto_is_exact_unless_int8_is_allowed(model: Path) -> None:
    for settings in ({}, {"precision": "float32"}, {"precision": "int8"}, {"engine": "native"}):
        chosen = Translator.load(model, **settings).engine
        assert isinstance(chosen, Router)
        assert isinstance(chosen.preferred, NativeEngine)
        assert isinstance(chosen, AttentionEngine)
    assert Translator.load(model).translate(SOURCES) == Translator.load(model, engine="torch").translate(SOURCES)
    assert isinstance(Translator.load(model, engine="ctranslate2").engine, CTranslate2Engine)
    assert isinstance(Translator.load(model, engine="torch").engine, TorchEngine)
    assert ENGINES[-1].name == "torch"


def test_without_a_compiler_the_next_engine_is_used(
    model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CC", "no-such-compiler")
    assert isinstance(Translator.load(model).engine, TorchEngine)
    message = capsys.readouterr().err
    assert "translating with PyTorch" in message and "no-such-compiler cannot be run" in message
    assert message.count("\n") == 1
    chosen = Translator.load(model, precision="int8").engine
    assert isinstance(chosen, Router)
    assert isinstance(chosen.preferred, CTranslate2Engine)
    with pytest.raises(NoCompilerError, match="set CC"):
        Translator.load(model, engine="native")


@pytest.mark.parametrize(("engine", "warnings"), [("native", 1), ("auto", 0)])
def test_refused_requests_go_to_the_reference(
    model: Path, capsys: pytest.CaptureFixture[str], engine: str, warnings: int
) -> None:
    """With one warning if the user named the engine that refuses them."""
    translator = Translator.load(model, engine=engine, precision="int8")
    wanted = [translator.request(coverage_penalty=penalty) for penalty in (0.0, 0.3, 0.0)]
    found = [translator.translate(SOURCES, requests=wanted) for _ in range(2)]
    assert found[0] == found[1]
    assert found[0][1] == Translator.load(model, engine="torch").translate(SOURCES, requests=wanted)[1]
    assert capsys.readouterr().err.count("coverage") == warnings
    assert inspect(translator, SOURCES[0]).maps


def test_a_named_engine_refuses(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["translate", str(model), "--engine", "ctranslate2", "-i", str(model / "README.md")]
    assert main([*arguments, "--sample"]) == 2
    assert "--engine torch" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="the computation of this engine is not visible"):
        inspect(Translator.load(model, engine="ctranslate2"), SOURCES[0])


def test_a_model_that_no_fast_engine_computes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tiny_model(tmp_path / "linear", config=tiny_config(encoder={"attention": {"kind": "linear"}}))
    with pytest.raises(ModelError, match="linear"):
        Translator.load(tmp_path / "linear", engine="ctranslate2")
    with pytest.raises(ConfigError, match="requires model.encoder.attention.kind=soft"):
        Translator.load(tmp_path / "linear", engine="native")
    assert isinstance(Translator.load(tmp_path / "linear", precision="int8").engine, TorchEngine)
    assert "computing in float32" in capsys.readouterr().err


def test_without_the_package(
    model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ctranslate2", None)
    with pytest.raises(ConfigError, match=r"pip install 'dragoman\[fast\]'"):
        Translator.load(model, engine="ctranslate2")
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert isinstance(Translator.load(model, precision="int8").engine, TorchEngine)
    assert "dragoman[fast]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("engine", "precision", "message"),
    [
        ("torch", "int8", "does not support int8: choose the engine native, ctranslate2"),
        ("tensor", None, "unknown engine 'tensor': use auto, native, ctranslate2, cuda, torch"),
        ("statistical", None, "the statistical engine does not compute models of the kind encoder_decoder: use auto"),
        ("auto", "int4", "unknown precision 'int4'"),
    ],
)
def test_unknown_names_are_refused(model: Path, engine: str, precision: str | None, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Translator.load(model, engine=engine, precision=precision)


def test_an_exported_folder_has_one_engine(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "exported"
    assert main(["export", str(model), "--to", "ctranslate2", "--out", str(out), "--quantization", "int8"]) == 0
    with pytest.raises(ConfigError, match="needs the model folder"):
        Translator.load(out, engine="torch")
    assert Translator.load(out, engine="ctranslate2", precision="float32").translate(SOURCES)
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="is not available on this machine"):
            Translator.load(out, "cuda")


def test_a_gpu_has_its_own_engine(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half precision is the default; the choice is checked without a GPU."""
    made: list[torch.dtype] = []
    engine = CudaEngine.__init__

    def on_cpu(self: CudaEngine, model: Any, tokenizers: Any, reference: Any, precision: torch.dtype) -> None:
        made.append(precision)
        engine(self, model, tokenizers, reference, torch.float32)

    monkeypatch.setattr(CudaEngine, "__init__", on_cpu)
    loaded = load_model_folder(model, CPU, "translate")
    gpu = torch.device("cuda")
    monkeypatch.setattr(registry, "reference", lambda loaded, device: TorchEngine(loaded.model, loaded.tokenizers, CPU))
    for name, precision in (("auto", None), ("auto", "float32"), ("cuda", None), ("cuda", "bfloat16")):
        chosen = engine_of(loaded, gpu, name, precision)
        assert isinstance(chosen, Router)
        assert isinstance(chosen.preferred, CudaEngine)
        assert isinstance(chosen.preferred, ContinuousEngine)
    assert made == [torch.float16, torch.float32, torch.float16, torch.bfloat16]
    with pytest.raises(ConfigError, match="does not support int8: choose the engine native, ctranslate2"):
        engine_of(loaded, gpu, "cuda", "int8")
    assert isinstance(engine_of(loaded, gpu, "auto", "int8"), TorchEngine)
    assert "no engine can compute in int8" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="--device cuda"):
        engine_of(loaded, CPU, "cuda")
    assert isinstance(engine_of(loaded, CPU, "auto", "float16"), TorchEngine)
    assert "cuda: the cuda engine runs on a GPU" in capsys.readouterr().err


def test_a_model_that_the_gpu_engine_does_not_decode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tiny_model(tmp_path / "linear", config=tiny_config(decoder={"attention": {"kind": "linear"}}))
    loaded = load_model_folder(tmp_path / "linear", CPU, "translate")
    assert isinstance(engine_of(loaded, torch.device("cuda"), "auto"), TorchEngine)
    assert "PyTorch in float32. cuda: the cuda engine cannot decode this model" in capsys.readouterr().err


def test_texts_through_the_gpu_engine(model: Path) -> None:
    """From texts to texts, including requests that the engine refuses."""
    loaded = load_model_folder(model, CPU, "translate")
    reference = TorchEngine(loaded.model, loaded.tokenizers, CPU)
    engine = CudaEngine(loaded.model, loaded.tokenizers, reference, torch.float32)
    ours = Translator(Router(engine, reference), loaded.tokenizers)
    theirs = Translator(reference, loaded.tokenizers)
    wanted = [
        ours.request(unknown="forbid"),
        ours.request(unknown="forbid", beam=1, prefix="ein"),
        ours.request(unknown="forbid", coverage_penalty=0.3),
    ]
    texts = SOURCES * 3
    requests = [wanted[place % 3] for place in range(len(texts))]
    assert ours.translate(texts, requests=requests) == theirs.translate(texts, requests=requests)
    batch = ours.continuous(4)
    assert batch is not None
    plain = [(text, wanted[0]) for text in SOURCES]
    assert batch.submit(plain) == []
    found = {}
    while batch.in_progress:
        found |= {line: best[0].text for line, best in batch.completed(1.0)}
    assert [found[line] for line in plain] == theirs.translate(SOURCES, requests=[wanted[0]] * len(SOURCES))
    batch.close()


@pytest.mark.parametrize(
    "error",
    [
        OSError(30, "Read-only file system"),
        ImportError("libgomp.so.1: cannot open shared object file"),
        RuntimeError("first line\nsecond line"),
        MemoryError(),
        ResourceError("the model does not fit into memory"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_any_failure_leads_to_the_next_engine(
    error: Exception, model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("dragoman.engines.native.engine.NativeEngine", fail)
    chosen = Translator.load(model, precision="int8").engine
    assert isinstance(chosen, Router) and isinstance(chosen.preferred, CTranslate2Engine)
    message = capsys.readouterr().err
    assert message.startswith("warning: translating with the ctranslate2 engine. native: ")
    assert message.count("\n") == 1 and "second line" not in message
    monkeypatch.setattr("dragoman.exchange.ctranslate2.folder.load_into_ctranslate2", fail)
    for precision, beginning in (("int8", "computing in float32"), (None, "translating with PyTorch in float32")):
        translator = Translator.load(model, precision=precision)
        assert isinstance(translator.engine, TorchEngine)
        message = capsys.readouterr().err
        assert message.startswith(f"warning: {beginning}") and message.count("\n") == 1
    with pytest.raises(type(error)):
        Translator.load(model, engine="native")


def test_a_package_that_crashes_is_not_imported(
    model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "crashing_package.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGILL)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"crashes when it is imported \(Illegal instruction\)"):
        check_import("crashing_package")
    check_import("no_such_package")  # which is an error of the import itself
    kinds = [replace(kind, package="crashing_package" if kind.package else None) for kind in ENGINES]
    monkeypatch.setattr(choices, "ENGINES", kinds)
    monkeypatch.setattr("dragoman.engines.native.engine.NativeEngine", None)
    assert isinstance(Translator.load(model, precision="int8").engine, TorchEngine)
    assert "crashes when it is imported" in capsys.readouterr().err


def test_a_model_is_refused_before_anything_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError

    for name in ("best_library", "calibrate"):
        monkeypatch.setattr(f"dragoman.engines.native.engine.{name}", fail)
    write_tiny_model(tmp_path / "linear", config=tiny_config(encoder={"attention": {"kind": "linear"}}))
    assert isinstance(Translator.load(tmp_path / "linear").engine, TorchEngine)
    assert "model.encoder.attention.kind=soft" in capsys.readouterr().err


def test_a_gpu_that_cannot_be_used(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model is translated on the CPU, unless the GPU was requested."""
    load = opening.load_model_folder

    def without_memory(folder: Path, device: torch.device, verb: str) -> Any:
        if device.type == "cuda":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 MiB.\nSee the documentation")
        return load(folder, device, verb)

    monkeypatch.setattr(opening, "choose_device", lambda name: torch.device("cuda" if name == "auto" else name))
    monkeypatch.setattr(opening, "load_model_folder", without_memory)
    translator = Translator.load(model, precision=None)
    message = capsys.readouterr().err
    assert translator.translate(SOURCES)
    assert "translating on the CPU" in message and "out of memory" in message and message.count("\n") == 1
    for settings in ({"device": "cuda"}, {"engine": "cuda"}):
        with pytest.raises(torch.OutOfMemoryError):
            Translator.load(model, **settings)


def test_bfloat16_on_a_cpu_is_taken_where_it_is_faster(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dragoman.engines.native.calibration.relative_speed", lambda precision, library: 1.2)
    for name in ("auto", "native"):
        assert Translator.load(model, engine=name, precision="bfloat16").engine.precision == "bfloat16"
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("dragoman.engines.native.calibration.relative_speed", lambda precision, library: 0.8)
    with pytest.raises(ConfigError, match=r"not faster than float32 on this processor \(0.80 times"):
        Translator.load(model, engine="native", precision="bfloat16")
    monkeypatch.setattr(registry, "bfloat16_speed", lambda device: 0.5)
    assert Translator.load(model, precision="bfloat16").engine.precision == "float32"
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and "computing in float32" in message and "0.80 times the speed" in message
    assert "torch: this cpu multiplies bfloat16 at only 0.50 times the speed of float32" in message


def test_pytorch_multiplies_in_bfloat16_where_it_is_faster(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Products are rounded to bfloat16 in searches and samples, but not in scores; an emulated type is refused."""
    monkeypatch.setattr("dragoman.engines.native.calibration.relative_speed", lambda precision, library: 0.8)
    monkeypatch.setattr(registry, "bfloat16_speed", lambda device: 3.0)
    narrow = Translator.load(model, engine="torch", precision="bfloat16")
    exact = Translator.load(model, engine="torch", precision="float32")
    assert capsys.readouterr().err == ""
    narrow.translate_nbest(SOURCES, narrow.request(beam=3, nbest=3))  # also measures the memory, in float32
    kinds = []
    forward = torch.nn.functional.linear

    def linear(*arguments: Any) -> torch.Tensor:
        found = forward(*arguments)
        kinds.append(found.dtype)
        return found

    monkeypatch.setattr(torch.nn.functional, "linear", linear)
    found = narrow.translate_nbest(SOURCES, narrow.request(beam=3, nbest=3))
    assert set(kinds) == {torch.bfloat16}
    for one, other in zip(found, exact.translate_nbest(SOURCES, exact.request(beam=3, nbest=3)), strict=True):
        assert one[0].score != other[0].score and abs(one[0].score - other[0].score) < 0.1
    kinds.clear()
    assert narrow.sample(SOURCES) and set(kinds) == {torch.bfloat16}
    assert narrow.score(SOURCES, SOURCES) == exact.score(SOURCES, SOURCES)
    assert Translator.load(model, precision="bfloat16").engine.precision == "bfloat16"
    assert "translating with PyTorch in bfloat16. native: " in capsys.readouterr().err
    monkeypatch.setattr(registry, "bfloat16_speed", lambda device: 0.04)
    with pytest.raises(ConfigError, match=r"multiplies bfloat16 at only 0\.04 times the speed of float32"):
        Translator.load(model, engine="torch", precision="bfloat16")
