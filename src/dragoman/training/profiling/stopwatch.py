"""`Stopwatch`: times the nested parts of a training step."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch
from torch import nn

PartPath = tuple[str, ...]
"""Names of nested parts, outermost first."""


class Stopwatch:
    """Sums the seconds of each part while `running`. On a GPU, it synchronises before it reads the clock."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.running = False
        self.seconds: dict[PartPath, float] = defaultdict(float)
        self._open: list[tuple[str, float]] = []

    def now(self) -> float:
        """Return the time of a monotonic clock (seconds)."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Add the time within this context to the part `name` of the part that is currently open, if any."""
        if not self.running:
            yield
            return
        self._open.append((name, self.now()))
        try:
            yield
        finally:
            path = tuple(part for part, _ in self._open)
            _, start = self._open.pop()
            self.seconds[path] += self.now() - start


@contextmanager
def time_methods(watch: Stopwatch, model: nn.Module) -> Iterator[None]:
    """Time methods of the model's modules within this context.

    A module class lists these methods in `timed`, with the names of their parts. The methods are replaced on the
    instances, because attention and decoders are not called like modules. Compiled layers are not divided into parts,
    because a clock inside them would have them compiled again, in pieces.
    """
    replaced: list[tuple[nn.Module, str]] = []

    compiled = (module for module in model.modules() if module._compiled_call_impl is not None)
    excluded = {inner for module in compiled for inner in module.modules()}
    for module in model.modules():
        if module in excluded:
            continue
        for method, name in getattr(module, "timed", ()):
            setattr(module, method, _timed(watch, name, getattr(module, method)))
            replaced.append((module, method))
    try:
        yield
    finally:
        for module, method in replaced:
            delattr(module, method)


def _timed(watch: Stopwatch, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*arguments: Any, **settings: Any) -> Any:
        with watch.part(name):
            return method(*arguments, **settings)

    return call
