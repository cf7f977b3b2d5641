"""The engine registry, and the functions that choose an engine."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import torch

from dragoman.base.errors import ConfigError, DragomanError, ModelError
from dragoman.base.log import info, warn
from dragoman.base.machine.bfloat16 import bfloat16_speed
from dragoman.base.machine.device import choose_device
from dragoman.base.packages import check_import
from dragoman.checkpoint.folder import LoadedModel, check_serves, load_model_folder
from dragoman.data.workers import available_cores
from dragoman.engines.automatic_precision import automatic_precision
from dragoman.engines.ctranslate2 import CTranslate2Engine
from dragoman.engines.cuda.engine import CudaEngine
from dragoman.engines.engine import Engine
from dragoman.engines.ensemble import open_ensemble
from dragoman.engines.native.calibration import relative_speed
from dragoman.engines.native.engine import NativeEngine
from dragoman.engines.native.model import stacks
from dragoman.engines.preferred import PreferredEngine
from dragoman.engines.statistical import StatisticalEngine
from dragoman.engines.torch.engine import AttentionTorchEngine
from dragoman.exchange.ctranslate2.folder import (
    ComputeSettings,
    ExportedModel,
    is_exported,
    load_into_ctranslate2,
    open_folder,
)
from dragoman.models.kinds import STATISTICAL_MODEL
from dragoman.native.build import best_library
from dragoman.native.embeddings import UnsupportedModelError
from dragoman.native.packing import Packing

Precision = Literal["float32", "float16", "bfloat16", "int8"]
"""Number format of matrix products. Formats other than float32 are faster, but change some translations."""

AUTOMATIC = "auto"
"""The name of the choice between float32 and int8 by measurement, see `automatic_precision`."""

_HALF = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class EngineKind:
    """A named engine and how to build it.

    make: builds the engine for a model on a device, with a number of threads; raises ConfigError or ModelError if the
    engine does not support the model or the device. precisions: supported precisions. automatic: precisions for which
    `auto` may choose the engine; they include float32 only if the engine returns the translations of TorchEngine, up to
    near-ties. fallback: True if the reference engine computes unsupported requests even when this engine was chosen by
    name. default: the precision if none is requested. devices: types of the devices that the engine computes on.
    package: an optional package that it needs.
    """

    name: str
    precisions: tuple[Precision, ...]
    automatic: tuple[Precision, ...]
    make: Callable[[LoadedModel, torch.device, Precision, int], Engine]
    fallback: bool = False
    default: Precision = "float32"
    devices: tuple[str, ...] = ("cpu",)
    package: str | None = None


def _torch(loaded: LoadedModel, device: torch.device, precision: Precision, threads: int) -> Engine:
    """Return PyTorch's engine. PyTorch sets the number of threads itself."""
    if precision == "bfloat16" and (speed := bfloat16_speed(device)) <= 1:
        raise ConfigError(
            f"this {device.type} multiplies bfloat16 at only {speed:.2f} times the speed of float32: "
            "use --precision float32"
        )
    return AttentionTorchEngine(loaded.model, loaded.tokenizers, device, _HALF[precision])


def _native(loaded: LoadedModel, device: torch.device, precision: Precision, threads: int) -> Engine:
    _check_cpu(device, "native")
    assert precision in ("float32", "bfloat16", "int8")
    if precision == "bfloat16":
        Packing(
            *stacks(loaded.model)
        )  # a model that the engine does not support is refused before anything is measured
        speed = relative_speed(precision, best_library())
        if speed <= 1:
            raise ConfigError(
                "bfloat16 is not faster than float32 on this processor "
                f"({speed:.2f} times the speed): use --precision float32 or int8"
            )
    return NativeEngine(loaded.model, loaded.tokenizers, _reference(loaded, device), precision, threads)


def _ctranslate2(loaded: LoadedModel, device: torch.device, precision: Precision, threads: int) -> Engine:
    _check_cpu(device, "ctranslate2")
    return CTranslate2Engine(load_into_ctranslate2(loaded, ComputeSettings(precision, threads)), threads)


def _cuda(loaded: LoadedModel, device: torch.device, precision: Precision, threads: int) -> Engine:
    if device.type != "cuda":
        raise ConfigError(f"the cuda engine runs on a GPU, not on {device}: use --device cuda")
    return CudaEngine(loaded.model, loaded.tokenizers, _reference(loaded, device), _HALF[precision])


ENGINES: list[EngineKind] = [
    EngineKind("native", ("float32", "bfloat16", "int8"), ("float32", "bfloat16", "int8"), _native, fallback=True),
    EngineKind("ctranslate2", ("float32", "int8"), ("int8",), _ctranslate2, package="ctranslate2"),
    EngineKind("cuda", tuple(_HALF), tuple(_HALF), _cuda, True, "float16", ("cuda",)),  # type: ignore[arg-type]
    EngineKind("torch", ("float32", "bfloat16"), ("float32", "bfloat16"), _torch, devices=("cpu", "cuda")),
]
"""All engines, the fastest first. The last is the reference, which supports every request."""


def register_engine(kind: EngineKind) -> EngineKind:
    """Add an engine before the reference, and return it. `auto` chooses it for its precisions in `automatic`.

    Raises ValueError if another engine has the same name.
    """
    if any(each.name == kind.name and each != kind for each in ENGINES) or kind.name == "auto":
        raise ValueError(f"there is already an engine called {kind.name!r}: choose another name")
    if kind not in ENGINES:
        ENGINES.insert(len(ENGINES) - 1, kind)
    return kind


_MEASURED = "native"
"""The engine whose int8 is measured at the end of training (`tasks.translation.precision_measurement`)."""


def open_engine(
    folders: Sequence[Path], device: str | None, name: str, precision: str | None, threads: int | None
) -> tuple[Engine, LoadedModel | ExportedModel]:
    """Return the engine for a model folder, a folder written by `dragoman export`, or an ensemble of several folders.

    Arguments are as in `Translator.load`. Raises the same errors as `open_ensemble`, `open_exported`,
    `load_model_folder` and `choose_engine`.
    """
    if len(folders) != 1:
        return open_ensemble(folders, device, name, precision)
    (folder,) = folders
    if is_exported(folder):
        return open_exported(folder, device, name, precision, threads)
    if check_serves(folder, "translate") == STATISTICAL_MODEL:
        return open_statistical(folder, device, name, precision, threads)
    chosen = choose_device(device or "auto")
    try:
        loaded = load_model_folder(folder, chosen, "translate")
    except RuntimeError as error:  # raised by CUDA, for example if the GPU has no free memory
        if chosen.type == "cpu" or (device or "auto") != "auto" or name == "cuda":
            raise
        warn(f"translating on the CPU, because the GPU cannot be used ({_one_line(error)}). To select it: --device cpu")
        chosen = choose_device("cpu")
        loaded = load_model_folder(folder, chosen, "translate")
    return choose_engine(loaded, chosen, name, precision, threads, folder), loaded


def choose_engine(
    loaded: LoadedModel,
    device: torch.device,
    name: str = "auto",
    precision: str | None = None,
    threads: int | None = None,
    folder: Path | None = None,
) -> Engine:
    """Return the engine with this name or, for `auto`, the fastest installed engine that supports the model.

    With `auto`, an engine that fails for any reason is skipped, and one message lists the reasons; requests that the
    chosen engine does not support are passed to the reference engine, with a warning. precision: None means float32 on
    a CPU and float16 on a GPU; `auto` means the same, except that the native engine computes in int8 if
    `automatic_precision` chooses it for `folder`, the model's folder. threads: None means one per processor. Raises
    ConfigError for an unknown name or precision, or a precision that the engine does not support, and the same errors
    as `EngineKind.make` for an engine that is chosen by name.
    """
    is_automatic = precision == AUTOMATIC and folder is not None and device.type == "cpu"
    requested, threads = _check_precision(precision), threads or default_threads()
    if name != "auto":
        kind = _find_engine(name)
        if is_automatic and kind.name == _MEASURED:
            assert folder is not None
            with _advice():
                engine = _make_automatic(kind, loaded, device, threads, folder)
            return PreferredEngine(engine, _reference(loaded, device))
        chosen = requested or kind.default
        if chosen not in kind.precisions:
            supporting = ", ".join(each.name for each in ENGINES if chosen in each.precisions)
            raise ConfigError(
                f"the {name} engine does not support {chosen}: choose the engine {supporting}, or --precision float32"
            )
        with _advice():
            engine = kind.make(loaded, device, chosen, threads)
        return PreferredEngine(engine, _reference(loaded, device)) if kind.fallback else engine
    reference = _reference(loaded, device)
    reasons: list[str] = []
    has_failed = False
    for kind in ENGINES[:-1]:
        chosen = requested or kind.default
        is_elsewhere = device.type not in kind.devices and requested in (None, *ENGINES[-1].precisions)
        if chosen not in kind.automatic or is_elsewhere:
            continue
        try:
            if kind.package is not None:
                check_import(kind.package)
            if is_automatic and kind.name == _MEASURED:
                assert folder is not None
                engine = _make_automatic(kind, loaded, device, threads, folder)
            else:
                engine = kind.make(loaded, device, chosen, threads)
        except (ConfigError, ModelError) as error:
            reasons.append(f"{kind.name}: {error}")
        except Exception as error:  # of a compiler, a file system, or another library
            has_failed = True
            reasons.append(f"{kind.name}: {error if isinstance(error, DragomanError) else _one_line(error)}")
        else:
            if reasons:
                (warn if has_failed else info)(f"translating with the {kind.name} engine. {'; '.join(reasons)}")
            return PreferredEngine(engine, reference, is_requested=False)
    last = ENGINES[-1]
    if requested in last.precisions and requested != last.default:
        try:
            engine = last.make(loaded, device, requested, threads)
        except ConfigError as error:
            reasons.append(f"{last.name}: {error}")
        else:
            (warn if has_failed else info)(f"translating with PyTorch in {requested}. {'; '.join(reasons)}")
            return engine
    if requested not in (None, last.default):
        warn(f"computing in float32, because no engine can compute in {requested}. {'; '.join(reasons)}")
    elif reasons:
        (warn if has_failed else info)(f"translating with PyTorch in float32. {'; '.join(reasons)}")
    return reference


@contextmanager
def _advice() -> Iterator[None]:
    """Recommend PyTorch if a named engine does not support a model."""
    try:
        yield
    except UnsupportedModelError as error:
        raise UnsupportedModelError(f"{error}: use --engine torch") from None


def _make_automatic(kind: EngineKind, loaded: LoadedModel, device: torch.device, threads: int, folder: Path) -> Engine:
    """Return the native engine in the precision that `automatic_precision` chooses, and print the reason."""
    chosen, reason = automatic_precision(folder)
    engine = kind.make(loaded, device, chosen, threads)
    info(f"Precision {reason}")
    return engine


def open_exported(
    folder: Path,
    device: str | None = None,
    name: str = "auto",
    precision: str | None = None,
    threads: int | None = None,
) -> tuple[Engine, ExportedModel]:
    """Return the engine of a folder written by `dragoman export`. precision: None or `auto` for that of its weights.

    Raises ConfigError for another engine or a device that is not a CPU, and the same errors as `open_folder`.
    """
    if name not in ("auto", "ctranslate2"):
        _find_engine(name)
        raise ConfigError(
            f"{folder} was exported for CTranslate2: --engine {name} needs the model folder from which it was exported"
        )
    _check_cpu(choose_device(device or "cpu"), "ctranslate2")
    workers = threads or default_threads()
    exported = open_folder(folder, ComputeSettings(_check_precision(precision) or "default", workers))
    return CTranslate2Engine(exported, workers), exported


def open_statistical(
    folder: Path,
    device: str | None = None,
    name: str = "auto",
    precision: str | None = None,
    threads: int | None = None,
) -> tuple[Engine, LoadedModel]:
    """Return the engine of a statistical translation model.

    Raises ConfigError for a named engine, another device than the CPU, or another precision than float32, and the same
    errors as `load_model_folder`.
    """
    if name != "auto":
        _find_engine(name)
        raise ConfigError(
            f"{folder} is a statistical translation model, which has an engine of its own: leave out --engine"
        )
    if _check_precision(precision) not in (None, "float32"):
        raise ConfigError(f"{folder} is a statistical translation model: leave out --precision {precision}")
    _check_cpu(choose_device(device or "cpu"), "statistical")
    loaded = load_model_folder(folder, torch.device("cpu"), "translate")
    return StatisticalEngine(loaded, threads or default_threads()), loaded


def default_threads() -> int:
    """Return PyTorch's number of threads if OMP_NUM_THREADS is set, else the number of available processors."""
    return torch.get_num_threads() if "OMP_NUM_THREADS" in os.environ else available_cores()


def _reference(loaded: LoadedModel, device: torch.device) -> AttentionTorchEngine:
    return AttentionTorchEngine(loaded.model, loaded.tokenizers, device)


def _find_engine(name: str) -> EngineKind:
    for kind in ENGINES:
        if kind.name == name:
            return kind
    raise ConfigError(f"unknown engine '{name}': use auto, {', '.join(kind.name for kind in ENGINES)}")


def _check_precision(name: str | None) -> Precision | None:
    if name in (None, AUTOMATIC):
        return None
    if name in get_args(Precision):
        return name  # type: ignore[return-value]
    raise ConfigError(f"unknown precision '{name}': use auto, {', '.join(get_args(Precision))}")


def _check_cpu(device: torch.device, name: str) -> None:
    if device.type != "cpu":
        raise ConfigError(f"the {name} engine runs on the CPU, not on {device}: use --device cpu")


def _one_line(error: Exception) -> str:
    """Return the type and the first line of an error raised by another library."""
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or ['no message'])[0]}"
