"""The registry of engines: `EngineKind` records what an engine serves; `register_engine` adds one from outside.

The builders of the built-in engines import them when they are used, which takes time.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch

from dragoman.base.errors import ConfigError
from dragoman.base.machine.kernels import bfloat16_speed
from dragoman.checkpoint.folder import LoadedModel
from dragoman.engines.engine import AttentionEngine, Engine
from dragoman.engines.native.automatic_precision import AutomaticPrecision, automatic_precision
from dragoman.models.kinds.encoder_only import EncoderOnly
from dragoman.models.kinds.ensemble import Ensemble
from dragoman.models.kinds.registry import STATISTICAL_MODEL

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


_FLOATING: dict[Precision, torch.dtype] = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}


def reference(loaded: LoadedModel, device: torch.device) -> AttentionEngine:
    """Return PyTorch's engine of a single translation model, in float32."""
    from dragoman.engines.torch.engine import AttentionTorchEngine

    return AttentionTorchEngine(loaded.model, loaded.tokenizers, device)


def _torch(loaded: LoadedModel, settings: EngineSettings) -> Engine:
    """Return PyTorch's engine. PyTorch sets the number of threads itself."""
    from dragoman.engines.torch.engine import AttentionTorchEngine, TorchEngine

    device = settings.device
    if settings.precision == "bfloat16" and (speed := bfloat16_speed(device)) <= 1:
        raise ConfigError(
            f"this {device.type} multiplies bfloat16 at only {speed:.2f} times the speed of float32: "
            "use --precision float32"
        )
    engine = TorchEngine if isinstance(loaded.model, Ensemble) else AttentionTorchEngine
    return engine(loaded.model, loaded.tokenizers, device, _FLOATING[settings.precision])


def _native(loaded: LoadedModel, settings: EngineSettings) -> Engine:
    from dragoman.engines.native.calibration import relative_speed
    from dragoman.engines.native.engine import NativeEngine
    from dragoman.engines.native.model import stacks
    from dragoman.engines.native.packing import Packing
    from dragoman.native.build import best_library

    precision = settings.precision
    assert precision != "float16"
    if precision == "bfloat16":
        Packing(*stacks(loaded.model))  # refuses models that the engine does not support before anything is measured
        speed = relative_speed(precision, best_library())
        if speed <= 1:
            raise ConfigError(
                "bfloat16 is not faster than float32 on this processor "
                f"({speed:.2f} times the speed): use --precision float32 or int8"
            )
    scorer = reference(loaded, settings.device)
    return NativeEngine(loaded.model, loaded.tokenizers, scorer, precision, settings.threads)


def _native_encoder(model: Any, settings: EngineSettings) -> EncoderOnly:
    """Return the model with a compiled encoder and its own head, which computes in float32."""
    from dragoman.engines.native.embeddings import UnsupportedModelError
    from dragoman.engines.native.encoder import NativeEncoder

    if not isinstance(model, EncoderOnly):
        raise UnsupportedModelError("the native engine requires a model with an encoder and a head")
    precision = settings.precision
    assert precision in ("float32", "int8")
    encoder = NativeEncoder(model, precision, settings.threads)
    return EncoderOnly(model.width, model.limit, encoder, model.head).eval()


def _ctranslate2(loaded: LoadedModel, settings: EngineSettings) -> Engine:
    from dragoman.engines.ctranslate2 import CTranslate2Engine
    from dragoman.exchange.ctranslate2.folder import ComputeSettings, load_into_ctranslate2

    compute = ComputeSettings(settings.precision, settings.threads)
    return CTranslate2Engine(load_into_ctranslate2(loaded, compute), settings.threads)


def _is_exported(folder: Path) -> bool:
    from dragoman.exchange.ctranslate2.folder import is_exported

    return is_exported(folder)


def _open_exported(folder: Path, precision: Precision | None, threads: int) -> tuple[Engine, Any]:
    from dragoman.engines.ctranslate2 import CTranslate2Engine
    from dragoman.exchange.ctranslate2.folder import ComputeSettings, open_folder

    exported = open_folder(folder, ComputeSettings(precision or "default", threads))
    return CTranslate2Engine(exported, threads), exported


def _cuda(loaded: LoadedModel, settings: EngineSettings) -> Engine:
    from dragoman.engines.cuda.engine import CudaEngine

    scorer = reference(loaded, settings.device)
    return CudaEngine(loaded.model, loaded.tokenizers, scorer, _FLOATING[settings.precision])


def _statistical(loaded: LoadedModel, settings: EngineSettings) -> Engine:
    from dragoman.engines.statistical import StatisticalEngine

    return StatisticalEngine(loaded, settings.threads)


def _same(model: Any, settings: EngineSettings) -> Any:
    """Return the model itself, which PyTorch computes."""
    return model.eval()


NATIVE = EngineKind(
    "native",
    {
        "translate": Service(
            _native,
            precisions=("float32", "bfloat16", "int8"),
            automatic=("float32", "bfloat16", "int8"),
            fallback=True,
            choose_precision=automatic_precision,
        ),
        "predict": Service(_native_encoder, precisions=("float32", "int8"), automatic=("float32", "int8")),
    },
)
CTRANSLATE2 = EngineKind(
    "ctranslate2",
    {"translate": Service(_ctranslate2, precisions=("float32", "int8"), automatic=("int8",))},
    package="ctranslate2",
    format=FolderFormat("CTranslate2", _is_exported, _open_exported),
)
CUDA = EngineKind(
    "cuda",
    {
        "translate": Service(
            _cuda, precisions=tuple(_FLOATING), automatic=tuple(_FLOATING), default="float16", fallback=True
        )
    },
    devices=("cuda",),
)
STATISTICAL = EngineKind(
    "statistical",
    {"translate": Service(_statistical, automatic=("float32",))},
    model_kinds=frozenset({STATISTICAL_MODEL.name}),
)
TORCH = EngineKind(
    "torch",
    {
        "translate": Service(
            _torch, precisions=("float32", "bfloat16"), automatic=("float32", "bfloat16"), ensembles=True
        ),
        "predict": Service(_same, automatic=("float32",)),
        "generate": Service(_same, automatic=("float32",)),
    },
    devices=None,
)

ENGINES: list[EngineKind] = [NATIVE, CTRANSLATE2, CUDA, STATISTICAL, TORCH]
"""All engines, the fastest first. The last is PyTorch's, the reference, which supports every request."""


def register_engine(kind: EngineKind) -> EngineKind:
    """Add an engine before the reference, and return it. `auto` chooses it for its precisions in `automatic`.

    Raises ValueError if another engine has the same name.
    """
    if any(each.name == kind.name and each != kind for each in ENGINES) or kind.name == "auto":
        raise ValueError(f"there is already an engine called {kind.name!r}: choose another name")
    if kind not in ENGINES:
        ENGINES.insert(len(ENGINES) - 1, kind)
    return kind
