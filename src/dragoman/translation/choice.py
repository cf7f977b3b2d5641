"""The registry of engines, and the choice among them."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import torch

from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.log import info, warn
from dragoman.base.machine.device import choose_device
from dragoman.checkpoint.folder import LoadedModel, load_model_folder
from dragoman.data.workers import available_cores
from dragoman.exchange.ctranslate2.folder import Computing, Exported, hand_over, is_exported, open_folder
from dragoman.translation.engine import Engine
from dragoman.translation.engines.ctranslate2 import CTranslate2Engine
from dragoman.translation.engines.cuda.engine import CudaEngine
from dragoman.translation.engines.native.build import NoCompilerError
from dragoman.translation.engines.native.engine import NativeEngine
from dragoman.translation.engines.preferred import PreferredEngine
from dragoman.translation.engines.torch import AttentionTorchEngine
from dragoman.translation.ensemble import open_ensemble

Precision = Literal["float32", "float16", "bfloat16", "int8"]
"""Number format of matrix products. All but float32 are faster and less exact: some translations differ."""

_HALF = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class EngineKind:
    """A named engine and how to build it.

    make: builds it for a model on a device, with a number of threads. Raises ConfigError or ModelError if the engine
    cannot compute the model here. precisions: supported precisions. automatic: precisions for which `auto` chooses it;
    float32 may be among them only if the engine is exact, so that its translations are those of TorchEngine, up to
    near-ties. fallback: whether the reference computes what the engine refuses even if the engine was chosen by name.
    default: the precision if none is chosen.
    """

    name: str
    precisions: tuple[Precision, ...]
    automatic: tuple[Precision, ...]
    make: Callable[[LoadedModel, torch.device, Precision, int], Engine]
    fallback: bool = False
    default: Precision = "float32"


def _torch(loaded: LoadedModel, device: torch.device, precision: Precision, threads: int) -> Engine:
    """Return PyTorch's engine; PyTorch sets its own number of threads."""
    return _reference(loaded, device)


def _native(loaded: LoadedModel, device: torch.device, precision: Precision, threads: int) -> Engine:
    _check_cpu(device, "native")
    assert precision in ("float32", "int8")
    return NativeEngine(loaded.model, loaded.tokenizers, _reference(loaded, device), precision, threads)


def _ctranslate2(loaded: LoadedModel, device: torch.device, precision: Precision, threads: int) -> Engine:
    _check_cpu(device, "ctranslate2")
    return CTranslate2Engine(hand_over(loaded, Computing(precision, threads)), threads)


def _cuda(loaded: LoadedModel, device: torch.device, precision: Precision, threads: int) -> Engine:
    if device.type != "cuda":
        raise ConfigError(f"the engine cuda computes on a GPU, not on {device}: use --device cuda")
    return CudaEngine(loaded.model, loaded.tokenizers, _reference(loaded, device), _HALF[precision])


ENGINES: Sequence[EngineKind] = (
    EngineKind("native", ("float32", "int8"), ("float32", "int8"), _native, fallback=True),
    EngineKind("ctranslate2", ("float32", "int8"), ("int8",), _ctranslate2),
    EngineKind("cuda", tuple(_HALF), tuple(_HALF), _cuda, fallback=True, default="float16"),  # type: ignore[arg-type]
    EngineKind("torch", ("float32",), ("float32",), _torch),
)
"""All engines, the fastest first. The last is the reference, which supports every request."""


def open_engine(
    folders: Sequence[Path], device: str | None, name: str, precision: str | None, threads: int | None
) -> tuple[Engine, LoadedModel | Exported]:
    """Return the engine for a model folder, for a folder that `dragoman export` wrote, or for several as an ensemble.

    Arguments are as in `Translator.load`. Raises what `open_ensemble`, `open_exported`, `load_model_folder` and
    `choose_engine` raise.
    """
    if len(folders) != 1:
        return open_ensemble(folders, device, name, precision)
    (folder,) = folders
    if is_exported(folder):
        return open_exported(folder, device, name, precision, threads)
    chosen = choose_device(device or "auto")
    loaded = load_model_folder(folder, chosen, "translate")
    return choose_engine(loaded, chosen, name, precision, threads), loaded


def choose_engine(
    loaded: LoadedModel,
    device: torch.device,
    name: str = "auto",
    precision: str | None = None,
    threads: int | None = None,
) -> Engine:
    """Return the engine with this name or, for `auto`, the fastest installed one that can compute the model.

    With `auto`, requests that this engine refuses go to the reference, with a warning. precision: None means float32 on
    a CPU and float16 on a GPU. threads: None means one per processor. Raises ConfigError for an unknown name or
    precision, or a precision that the engine does not support, and what `EngineKind.make` raises.
    """
    chosen, threads = _precision(precision), threads or _threads()
    if name != "auto":
        kind = _named(name)
        wanted = chosen or kind.default
        if wanted not in kind.precisions:
            supporting = ", ".join(each.name for each in ENGINES if wanted in each.precisions)
            raise ConfigError(
                f"the engine {name} does not compute in {wanted}: choose {supporting}, or --precision float32"
            )
        engine = kind.make(loaded, device, wanted, threads)
        return PreferredEngine(engine, _reference(loaded, device)) if kind.fallback else engine
    reference = _reference(loaded, device)
    reasons = []
    for kind in ENGINES[:-1]:
        if (wanted := chosen or kind.default) in kind.automatic:
            try:
                return PreferredEngine(kind.make(loaded, device, wanted, threads), reference)
            except (ConfigError, ModelError) as error:
                reasons.append(f"{kind.name}: {error}")
            except NoCompilerError as error:
                info(f"translating without the native engine, the fastest one: {error}")
    if chosen is not None and chosen not in ENGINES[-1].precisions:
        warn(f"computing in float32, since no engine can compute in {chosen}. {'; '.join(reasons)}")
    elif device.type == "cuda":
        info(f"translating with PyTorch in float32: {reasons[-1]}")
    return reference


def open_exported(
    folder: Path,
    device: str | None = None,
    name: str = "auto",
    precision: str | None = None,
    threads: int | None = None,
) -> tuple[Engine, Exported]:
    """Return the engine of a folder that `dragoman export` wrote. precision: None means that of the stored weights.

    Raises ConfigError for another engine or a device that is not a CPU, and what `open_folder` raises.
    """
    if name not in ("auto", "ctranslate2"):
        _named(name)
        raise ConfigError(
            f"{folder} was exported for ctranslate2: with --engine {name} give the model folder that it was made from"
        )
    _check_cpu(choose_device(device or "cpu"), "ctranslate2")
    workers = threads or _threads()
    exported = open_folder(folder, Computing(_precision(precision) or "default", workers))
    return CTranslate2Engine(exported, workers), exported


def _threads() -> int:
    """Return one thread per processor, unless OMP_NUM_THREADS is set."""
    return torch.get_num_threads() if "OMP_NUM_THREADS" in os.environ else available_cores()


def _reference(loaded: LoadedModel, device: torch.device) -> AttentionTorchEngine:
    return AttentionTorchEngine(loaded.model, loaded.tokenizers, device)


def _named(name: str) -> EngineKind:
    for kind in ENGINES:
        if kind.name == name:
            return kind
    raise ConfigError(f"unknown engine '{name}': use auto, {', '.join(kind.name for kind in ENGINES)}")


def _precision(name: str | None) -> Precision | None:
    if name is None or name in get_args(Precision):
        return name  # type: ignore[return-value]
    raise ConfigError(f"unknown precision '{name}': use {', '.join(get_args(Precision))}")


def _check_cpu(device: torch.device, name: str) -> None:
    if device.type != "cpu":
        raise ConfigError(f"the engine {name} computes on the CPU, not on {device}: use --device cpu")
