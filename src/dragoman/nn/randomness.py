"""Which generator random draws come from, so that threads that compute at one time do not share one."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

_generator: ContextVar[torch.Generator | None] = ContextVar("generator of random draws", default=None)


@contextmanager
def drawing_from(generator: torch.Generator) -> Iterator[None]:
    """While open, what this thread draws on the CPU comes from `generator`."""
    token = _generator.set(generator)
    try:
        yield
    finally:
        _generator.reset(token)


def generator(device: torch.device) -> torch.Generator | None:
    """Where draws on `device` shall come from; None for its default generator, always so on other than CPUs."""
    return _generator.get() if device.type == "cpu" else None
