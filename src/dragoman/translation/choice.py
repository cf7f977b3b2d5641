"""Which engine translates: the registry, and what `auto` takes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.log import warn
from dragoman.base.machine.device import choose_device
from dragoman.checkpoint.folder import LoadedModel
from dragoman.exchange.ctranslate2.folder import Computing, Exported, hand_over, open_folder
from dragoman.translation.engine import Engine
from dragoman.translation.engines.ctranslate2 import CTranslate2Engine
from dragoman.translation.engines.preferred import PreferredEngine
from dragoman.translation.engines.torch import TorchEngine

Precision = Literal["float32", "int8"]
"""In what numbers matrix products are computed. int8 is faster and rounds: some translations differ."""

REFERENCE: Precision = "float32"


@dataclass(frozen=True)
class EngineKind:
    """An engine by its name. make: raises ConfigError or ModelError where it cannot compute the model here.

    precisions: those that it has; automatic: those that `auto` takes it for. An engine that is exact, that is with the
    translations of TorchEngine up to near-ties, may be taken for float32.
    """

    name: str
    precisions: tuple[Precision, ...]
    automatic: tuple[Precision, ...]
    make: Callable[[LoadedModel, torch.device, Precision], Engine]


def _torch(loaded: LoadedModel, device: torch.device, precision: Precision) -> Engine:
    return TorchEngine(loaded.model, loaded.tokenizers, device)


def _ctranslate2(loaded: LoadedModel, device: torch.device, precision: Precision) -> Engine:
    _check_cpu(device)
    workers = torch.get_num_threads()
    return CTranslate2Engine(hand_over(loaded, Computing(precision, workers)), workers)


ENGINES: Sequence[EngineKind] = (
    EngineKind("ctranslate2", ("float32", "int8"), ("int8",), _ctranslate2),
    EngineKind("torch", ("float32",), ("float32",), _torch),
)
"""The fastest first; the last can do whatever can be asked for."""


def choose_engine(
    loaded: LoadedModel, device: torch.device, name: str = "auto", precision: str | None = None
) -> Engine:
    """The engine of that name, or for `auto` the fastest that is installed and can compute the model.

    What that one refuses of a request, the last of `ENGINES` does, and it is said. precision: None is float32. Raises
    ConfigError for a name or a precision that there is not, or that the engine does not have, and what `make` raises.
    """
    chosen = _precision(precision) or REFERENCE
    if name != "auto":
        kind = _named(name)
        if chosen not in kind.precisions:
            having = ", ".join(each.name for each in ENGINES if chosen in each.precisions)
            raise ConfigError(
                f"the engine {name} does not compute in {chosen}: choose {having}, or --precision float32"
            )
        return kind.make(loaded, device, chosen)
    last = ENGINES[-1].make(loaded, device, REFERENCE)
    reasons = []
    for kind in ENGINES[:-1]:
        if chosen in kind.automatic:
            try:
                return PreferredEngine(kind.make(loaded, device, chosen), last)
            except (ConfigError, ModelError) as error:
                reasons.append(f"{kind.name}: {error}")
    if chosen not in ENGINES[-1].precisions:
        warn(f"computing in {REFERENCE}, since no engine can in {chosen}. {'; '.join(reasons)}")
    return last


def open_exported(
    folder: Path, device: str | None = None, name: str = "auto", precision: str | None = None
) -> tuple[Engine, Exported]:
    """The engine of a folder that `dragoman export` wrote. precision: None is as its weights are stored.

    Raises ConfigError for another engine or a device that is no CPU, ModelError as `open_folder`.
    """
    if name not in ("auto", "ctranslate2"):
        _named(name)
        raise ConfigError(f"{folder} was exported for ctranslate2: for --engine {name} give the model folder it is of")
    _check_cpu(choose_device(device or "cpu"))
    workers = torch.get_num_threads()
    exported = open_folder(folder, Computing(_precision(precision) or "default", workers))
    return CTranslate2Engine(exported, workers), exported


def _named(name: str) -> EngineKind:
    for kind in ENGINES:
        if kind.name == name:
            return kind
    raise ConfigError(f"there is no engine '{name}': use auto, {', '.join(kind.name for kind in ENGINES)}")


def _precision(name: str | None) -> Precision | None:
    if name is None or name == "float32" or name == "int8":
        return name  # type: ignore[return-value]
    raise ConfigError(f"there is no precision '{name}' to translate in: use float32 or int8")


def _check_cpu(device: torch.device) -> None:
    if device.type != "cpu":
        raise ConfigError(f"the engine ctranslate2 computes on the CPU, not on {device}: use --device cpu")
