"""The random generator of each thread, so that concurrent threads do not share one."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

_generator: ContextVar[torch.Generator | None] = ContextVar("generator of random draws", default=None)


@contextmanager
def drawing_from(generator: torch.Generator) -> Iterator[None]:
    """Within this context, this thread's random draws on the CPU come from `generator`."""
    token = _generator.set(generator)
    try:
        yield
    finally:
        _generator.reset(token)


def generator(device: torch.device) -> torch.Generator | None:
    """Return the generator for draws on `device`; None means its default generator, always used except on a CPU."""
    return _generator.get() if device.type == "cpu" else None
