"""`Stopwatch`: how long the parts of a training step take, each inside the part that it belongs to."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch
from torch import nn

Path = tuple[str, ...]
"""Names of parts from the outermost in."""


class Stopwatch:
    """Adds up seconds by part, while `running`. On a GPU it waits for what was started before it looks at the clock."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.running = False
        self.seconds: dict[Path, float] = defaultdict(float)
        self._open: list[tuple[str, float]] = []

    def now(self) -> float:
        """Seconds of a steady clock."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """While open, time goes to `name` inside the parts that are open already."""
        if not self.running:
            yield
            return
        self._open.append((name, self.now()))
        try:
            yield
        finally:
            path = tuple(part for part, _ in self._open)
            _, begin = self._open.pop()
            self.seconds[path] += self.now() - begin


@contextmanager
def watching(watch: Stopwatch, model: nn.Module) -> Iterator[None]:
    """While open, the model's parts report to `watch`: those whose class says in `timed` which methods are which part.

    These methods are replaced on the instances, since attention and decoders are not called as modules are.
    """
    replaced: list[tuple[nn.Module, str]] = []

    for module in model.modules():
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
