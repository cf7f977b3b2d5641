"""How this process was started: alone, or by torchrun with others."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from dragoman.training.ranks.interface import Ranks


@contextmanager
def open_ranks(device: str) -> Iterator[Ranks]:
    """Join the processes that torchrun started (RANK and WORLD_SIZE in the environment), or be the only one.

    Raises ConfigError for a device that is not there for each of them, RankLost when one of them has ended.
    """
    if "RANK" not in os.environ or int(os.environ.get("WORLD_SIZE", "1")) < 2:
        yield Ranks(device)
        return
    from dragoman.training.ranks.group import open_group  # torch.distributed only where it is needed

    with open_group(device) as group:
        yield group


def restarted() -> bool:
    """Whether torchrun has started this process in the place of one that failed: then the run goes on by itself."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
