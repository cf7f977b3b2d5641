"""Per-thread random generators, so that concurrent threads do not share one."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

_generator: ContextVar[torch.Generator | None] = ContextVar("generator of random draws", default=None)


@contextmanager
def use_generator(generator: torch.Generator) -> Iterator[None]:
    """Use `generator` for the random draws of this thread on the CPU within this context."""
    token = _generator.set(generator)
    try:
        yield
    finally:
        _generator.reset(token)


def generator(device: torch.device) -> torch.Generator | None:
    """Return the generator for draws on `device`, or None for the default generator of the device.

    Only draws on a CPU use the generator of `use_generator`.
    """
    return _generator.get() if device.type == "cpu" else None
