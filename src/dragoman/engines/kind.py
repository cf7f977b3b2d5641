"""`EngineKind`: the record of an engine: the models that it serves, its devices and precisions, and how to build it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch

from dragoman.engines.native.automatic_precision import AutomaticPrecision

Precision = Literal["float32", "float16", "bfloat16", "int8"]
"""Number format of matrix products. Formats other than float32 are faster, but change some outputs."""

Ability = Literal["translate", "predict", "generate"]
"""What an engine computes: translations, predictions of labels, or continuations and probabilities of texts."""

MODELS: Mapping[Ability, str] = {
    "translate": "translation models",
    "predict": "models that predict labels",
    "generate": "language models",
}
"""The models with each ability, for messages."""


@dataclass(frozen=True)
class EngineSettings:
    """How an engine computes. threads: the maximum number of threads of engines other than PyTorch."""

    device: torch.device
    precision: Precision = "float32"
    threads: int = 1


@dataclass(frozen=True)
class Service:
    """How an engine serves the models with one ability.

    build: builds the engine for a model; raises ConfigError or ModelError if the engine does not support it. The model
    and the engine are
      translate: a `LoadedModel`, and an `Engine`;
      predict: an `EncoderOnly`, and a module with the same outputs;
      generate: a `CausalModel`, and another with the same outputs.
    precisions: supported precisions. automatic: precisions for which `auto` may choose the engine; they include float32
    only if the engine has the results of PyTorch, up to near-ties. default: the precision if none is requested.
    fallback: True if PyTorch computes the requests that the engine does not support even when the user named the
    engine. ensembles: whether a model may be an ensemble. choose_precision: chooses the precision `auto` of a model
    folder on the CPU; None for the default.
    """

    build: Callable[[Any, EngineSettings], Any]
    precisions: tuple[Precision, ...] = ("float32",)
    automatic: tuple[Precision, ...] = ()
    default: Precision = "float32"
    fallback: bool = False
    ensembles: bool = False
    choose_precision: Callable[[Path], AutomaticPrecision] | None = None


@dataclass(frozen=True)
class FolderFormat:
    """The model folders that only one engine can read, such as those of an export.

    name: completes "was exported for". matches: whether a folder has this format. open: returns the engine of a folder,
    and a description of its model with the attributes `tokenizers`, `meta` and `config`; the arguments are the folder,
    the precision (None: that of the stored parameters) and the number of threads.
    """

    name: str
    matches: Callable[[Path], bool]
    open: Callable[[Path, Precision | None, int], tuple[Any, Any]]


@dataclass(frozen=True)
class EngineKind:
    """A named engine.

    serves: the abilities of the models that it computes. devices: the types of the devices that it computes on; None
    for all. model_kinds: names of the kinds of models that only this engine computes; empty for an engine that computes
    the other kinds. package: an optional package that it needs. format: the model folders that only this engine reads.
    """

    name: str
    serves: Mapping[Ability, Service]
    devices: tuple[str, ...] | None = ("cpu",)
    model_kinds: frozenset[str] = field(default=frozenset())
    package: str | None = None
    format: FolderFormat | None = None

    def computes_on(self, device: torch.device) -> bool:
        """Return whether the engine computes on a device."""
        return self.devices is None or device.type in self.devices
