"""Which engine translates: the registry, and what `auto` takes."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.log import info, warn
from dragoman.base.machine.device import choose_device
from dragoman.checkpoint.folder import LoadedModel
from dragoman.data.workers import cores
from dragoman.exchange.ctranslate2.folder import Computing, Exported, hand_over, open_folder
from dragoman.translation.engine import Engine
from dragoman.translation.engines.ctranslate2.engine import CTranslate2Engine
from dragoman.translation.engines.native.build import NoCompilerError
from dragoman.translation.engines.native.engine import NativeEngine
from dragoman.translation.engines.preferred import PreferredEngine
from dragoman.translation.engines.torch import TorchEngine

Precision = Literal["float32", "int8"]
"""In what numbers matrix products are computed. int8 is faster and rounds: some translations differ."""

REFERENCE: Precision = "float32"


@dataclass(frozen=True)
class EngineKind:
    """An engine by its name.

    make: of a model on a device, with so many threads; PyTorch has its own. Raises ConfigError or ModelError where the
    engine cannot compute the model here.

    precisions: those that it has; automatic: those that `auto` takes it for. An engine that is exact, that is with the
    translations of TorchEngine up to near-ties, may be taken for float32. helped: whether the last engine computes
    what it refuses also where it was asked for by its name.
    """

    name: str
    precisions: tuple[Precision, ...]
    automatic: tuple[Precision, ...]
    make: Callable[[LoadedModel, torch.device, Precision, int], Engine]
    helped: bool = False


def _torch(loaded: LoadedModel, device: torch.device, precision: Precision, threads: int) -> Engine:
    return TorchEngine(loaded.model, loaded.tokenizers, device)


def _native(loaded: LoadedModel, device: torch.device, precision: Precision, threads: int) -> Engine:
    _check_cpu(device, "native")
    reference = TorchEngine(loaded.model, loaded.tokenizers, device)
    return NativeEngine(loaded.model, loaded.tokenizers, reference, precision, threads)


def _ctranslate2(loaded: LoadedModel, device: torch.device, precision: Precision, threads: int) -> Engine:
    _check_cpu(device, "ctranslate2")
    return CTranslate2Engine(hand_over(loaded, Computing(precision, threads)), threads)


ENGINES: Sequence[EngineKind] = (
    EngineKind("native", ("float32", "int8"), ("float32", "int8"), _native, helped=True),
    EngineKind("ctranslate2", ("float32", "int8"), ("int8",), _ctranslate2),
    EngineKind("torch", ("float32",), ("float32",), _torch),
)
"""The fastest first; the last can do whatever can be asked for."""


def choose_engine(
    loaded: LoadedModel,
    device: torch.device,
    name: str = "auto",
    precision: str | None = None,
    threads: int | None = None,
) -> Engine:
    """The engine of that name, or for `auto` the fastest that is installed and can compute the model.

    What that one refuses of a request, the last of `ENGINES` does, and it is said. precision: None is float32. threads:
    None is one a processor. Raises ConfigError for a name or a precision that there is not, or that the engine does not
    have, and what `make` raises.
    """
    chosen, threads = _precision(precision) or REFERENCE, threads or _threads()
    if name != "auto":
        kind = _named(name)
        if chosen not in kind.precisions:
            having = ", ".join(each.name for each in ENGINES if chosen in each.precisions)
            raise ConfigError(
                f"the engine {name} does not compute in {chosen}: choose {having}, or --precision float32"
            )
        made = kind.make(loaded, device, chosen, threads)
        return PreferredEngine(made, ENGINES[-1].make(loaded, device, REFERENCE, threads)) if kind.helped else made
    last = ENGINES[-1].make(loaded, device, REFERENCE, threads)
    reasons = []
    for kind in ENGINES[:-1]:
        if chosen in kind.automatic:
            try:
                return PreferredEngine(kind.make(loaded, device, chosen, threads), last)
            except (ConfigError, ModelError) as error:
                reasons.append(f"{kind.name}: {error}")
            except NoCompilerError as error:
                info(f"translating without the native engine, which is the fastest: {error}")
    if chosen not in ENGINES[-1].precisions:
        warn(f"computing in {REFERENCE}, since no engine can in {chosen}. {'; '.join(reasons)}")
    return last


def open_exported(
    folder: Path,
    device: str | None = None,
    name: str = "auto",
    precision: str | None = None,
    threads: int | None = None,
) -> tuple[Engine, Exported]:
    """The engine of a folder that `dragoman export` wrote. precision: None is as its weights are stored.

    Raises ConfigError for another engine or a device that is no CPU, ModelError as `open_folder`.
    """
    if name not in ("auto", "ctranslate2"):
        _named(name)
        raise ConfigError(f"{folder} was exported for ctranslate2: for --engine {name} give the model folder it is of")
    _check_cpu(choose_device(device or "cpu"), "ctranslate2")
    workers = threads or _threads()
    exported = open_folder(folder, Computing(_precision(precision) or "default", workers))
    return CTranslate2Engine(exported, workers), exported


def _threads() -> int:
    """One a processor, unless torch was told otherwise from outside."""
    return torch.get_num_threads() if "OMP_NUM_THREADS" in os.environ else cores()


def _named(name: str) -> EngineKind:
    for kind in ENGINES:
        if kind.name == name:
            return kind
    raise ConfigError(f"there is no engine '{name}': use auto, {', '.join(kind.name for kind in ENGINES)}")


def _precision(name: str | None) -> Precision | None:
    if name is None or name == "float32" or name == "int8":
        return name  # type: ignore[return-value]
    raise ConfigError(f"there is no precision '{name}' to translate in: use float32 or int8")


def _check_cpu(device: torch.device, name: str) -> None:
    if device.type != "cpu":
        raise ConfigError(f"the engine {name} computes on the CPU, not on {device}: use --device cpu")
