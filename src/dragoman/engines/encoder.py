"""The engines that compute the states of texts: PyTorch, and compiled code for Transformers on the CPU."""

from dataclasses import dataclass, replace

import torch

from dragoman.base.errors import ConfigError, ResourceError
from dragoman.base.log import warn
from dragoman.models.architectures.encoder_only import EncoderOnly
from dragoman.native.embeddings import UnsupportedModelError
from dragoman.native.encoder import NativeEncoder

ENGINES = ("auto", "native", "torch")
PRECISIONS = ("float32", "int8")
"""Number formats of matrix products. int8 is faster, but changes some predictions. The head computes in float32."""


@dataclass(frozen=True)
class EncoderEngine:
    """An engine for a model.

    name: native or torch. precision: float32 or int8. model: the model with the encoder of the engine and its own head.
    """

    name: str
    precision: str
    model: EncoderOnly

    def of_task(self, name: str) -> "EncoderEngine":
        """Return the engine for one task of a model with several heads. Raises KeyError for an unknown task."""
        return replace(self, model=self.model.of_task(name))


def choose_engine(model: EncoderOnly, name: str = "auto", precision: str = "float32") -> EncoderEngine:
    """Return the engine with this name or, for `auto`, the native engine if it supports the model, otherwise PyTorch.

    The native engine has as many threads as PyTorch at the time of this call. `auto` prints a message only if the
    native engine supports the model but cannot be used, or if the precision is not supported. Raises ConfigError for an
    unknown name or precision, for a precision or a device that the named engine does not support, and for a model that
    it does not support; ModelError if parameters are not finite; and ResourceError if the named engine cannot be used.
    """
    if name not in ENGINES:
        raise ConfigError(f"unknown engine '{name}' of a model that predicts labels: use {_listed(ENGINES)}")
    if precision not in PRECISIONS:
        raise ConfigError(f"unknown precision '{precision}' of a model that predicts labels: use {_listed(PRECISIONS)}")
    if name == "torch" and precision != "float32":
        raise ConfigError(f"the torch engine does not support {precision}: use --engine native, or --precision float32")
    reference = EncoderEngine("torch", "float32", model)
    device = next(model.parameters()).device
    if device.type != "cpu":
        if name == "native" or precision != "float32":
            raise ConfigError(
                f"the native engine, which supports int8, runs on the CPU, not on {device}: use --device cpu"
            )
        return reference
    if name == "torch":
        return reference
    try:
        encoder = NativeEncoder(model, "int8" if precision == "int8" else "float32", torch.get_num_threads())
        return EncoderEngine("native", precision, EncoderOnly(model.width, model.limit, encoder, model.head).eval())
    except (UnsupportedModelError, ResourceError) as error:
        if name == "native" and isinstance(error, ResourceError):
            raise
        if name == "native":
            raise UnsupportedModelError(f"{error}: use --engine torch") from None
        if precision != "float32":
            warn(f"computing in float32, because {error}")
        elif isinstance(error, ResourceError):
            warn(f"predicting with PyTorch. native: {error}")
        return reference


def _listed(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
