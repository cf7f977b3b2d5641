"""Compiled layers: torch.compile on what every update runs again and again, and on nothing else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from dragoman.base.errors import ConfigError
from dragoman.base.log import warn


def compile_layers(model: nn.Module, device: torch.device, backend: str | Callable[..., Any] = "inductor") -> None:
    """Have modules that are `compilable`, Transformer layers, compiled when they first run: alike ones share a graph.

    Lengths and numbers of sentences are symbols in it, so that batches of any shape run the same graph; torch makes
    another for batches of one sentence. The parameters, and their names, stay what they were. backend: torch.compile's.
    Raises ConfigError where the model has no such module.
    """
    layers = [module for module in model.modules() if getattr(module, "compilable", False)]
    if not layers:
        raise ConfigError("train.compile=true compiles Transformer layers, and this model has none: leave it out")
    if device.type == "cpu":
        warn("train.compile=true is for GPUs: on CPUs compiled layers were slower by far")
    for layer in layers:
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
