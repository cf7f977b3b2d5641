"""Compiled layers: torch.compile on what every update runs again and again, and on nothing else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from dragoman.base.errors import ConfigError
from dragoman.base.log import warn
from dragoman.models.seq2seq import Seq2Seq
from dragoman.models.transformer import DecoderLayer, EncoderLayer
from dragoman.train.config import RunConfig


def check_compilable(config: RunConfig) -> None:
    """Raises ConfigError where `train.compile` asks for what the model does not have."""
    kinds = {config.model.encoder.kind, config.model.decoder.kind}
    if config.train.compile and "transformer" not in kinds:
        raise ConfigError(
            f"train.compile=true compiles Transformer layers, and a {' and '.join(sorted(kinds))} model has none: "
            "leave it out"
        )


def compile_layers(model: Seq2Seq, device: torch.device, backend: str | Callable[..., Any] = "inductor") -> None:
    """Have the Transformer layers compiled when they first run: all of an encoder share one graph, all of a decoder.

    Lengths and numbers of sentences are symbols in it, so that batches of any shape run the same graph; torch makes
    another for batches of one sentence. The parameters, and their names, stay what they were. backend: torch.compile's.
    """
    if device.type == "cpu":
        warn("train.compile=true is for GPUs: on CPUs compiled layers were slower by far")
    for layer in model.modules():
        if isinstance(layer, EncoderLayer | DecoderLayer):
            layer.compile(dynamic=True, backend=backend)


@contextmanager
def uncompiled(compiled: bool) -> Iterator[None]:
    """While open, layers run as they are written: translating, a token at a time, is not what is compiled.

    compiled: whether they are; else torch's compiler is not even imported, which takes a second.
    """
    if not compiled:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


@contextmanager
def compilation_explained() -> Iterator[None]:
    """Raises ConfigError in place of what torch's compiler raises where it fails."""
    try:
        yield
    except RuntimeError as error:
        if not type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
            raise
        lines = str(error).strip().splitlines() or [type(error).__name__]
        reason = " ".join(lines[:2]) if lines[0].endswith("raised:") else lines[0]
        raise ConfigError(
            f"the layers could not be compiled ({reason}): leave train.compile out, or install what torch.compile "
            "needs, a C++ compiler on a CPU, Triton and a C compiler on a GPU"
        ) from None
