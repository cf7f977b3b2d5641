"""Compilation of the layers that run many times in every update, with torch.compile."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from dragoman.base.errors import ConfigError
from dragoman.base.log import warn


def compile_layers(model: nn.Module, device: torch.device, backend: str | Callable[..., Any] = "inductor") -> None:
    """Compile the `compilable` modules (Transformer layers) on their first call; identical layers share one graph.

    Sequence length and batch size are symbolic, so that batches of any shape use the same graph; torch compiles a
    separate graph for batches of one sentence. Parameters and their names do not change. backend: as for
    `torch.compile`. Raises ConfigError if the model has no such module.
    """
    layers = [module for module in model.modules() if getattr(module, "compilable", False)]
    if not layers:
        raise ConfigError("train.compile=true compiles Transformer layers, but this model has none: remove the setting")
    if device.type == "cpu":
        warn("train.compile=true is meant for GPUs: on CPUs compiled layers were much slower")
    for layer in layers:
        layer.compile(dynamic=True, backend=backend)


@contextmanager
def uncompiled(compiled: bool) -> Iterator[None]:
    """Disable compilation in this context, for example for decoding, which processes one token at a time.

    compiled: whether layers were compiled. If not, torch's compiler is not imported, because the import takes a second.
    """
    if not compiled:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


@contextmanager
def explain_compiler_errors() -> Iterator[None]:
    """Convert errors of torch's compiler to ConfigError within this context."""
    try:
        yield
    except RuntimeError as error:
        if not type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
            raise
        lines = str(error).strip().splitlines() or [type(error).__name__]
        reason = " ".join(lines[:2]) if lines[0].endswith("raised:") else lines[0]
        raise ConfigError(
            f"the layers could not be compiled ({reason}): remove train.compile, or install the requirements of "
            "torch.compile (a C++ compiler for a CPU, or Triton and a C compiler for a GPU)"
        ) from None
