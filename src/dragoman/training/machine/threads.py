"""Threads that each compute the gradient of a share of an update, with a share of the cores."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

import torch
from torch import nn

Work = TypeVar("Work")
Result = TypeVar("Result")

_FEWEST_TOKENS = 1024
"""Target tokens of a batch that a thread gets at least: with fewer, adding up its gradient would cost too much."""


class Threads:
    """Two cores that share every matrix product and every sum wait for one another thousands of times in an update.

    Two threads with half of the sentences each wait once. That is faster on an idle machine and several times as fast
    on one that does other work too, where the slower core holds up the other at each meeting (docs/EXPERIMENTS.md).
    """

    def __init__(self, count: int, cores: int) -> None:
        """count: threads, each of which gets cores // count of the machine's cores."""
        self.count, self._cores = count, max(1, cores // count)
        self._pool = ThreadPoolExecutor(
            count, "dragoman-thread", initializer=torch.set_num_threads, initargs=(self._cores,)
        )

    def map(self, function: Callable[[Work], Result], shares: Sequence[Work], together: bool = True) -> list[Result]:
        """The results in the order of the shares. Raises what a thread raised, once all have come to an end.

        together: False to compute the same one after another in the calling thread, for what times the parts of it.
        """
        if not together:
            before = torch.get_num_threads()
            torch.set_num_threads(self._cores)
            try:
                return [function(share) for share in shares]
            finally:
                torch.set_num_threads(before)
        futures: list[Future[Result]] = [self._pool.submit(function, share) for share in shares]
        wait(futures)
        return [future.result() for future in futures]

    def close(self) -> None:
        """Let go of the threads."""
        self._pool.shutdown()


def build_threads(model: nn.Module, divisible: bool, device: torch.device, cores: int, tokens: int) -> Threads | None:
    """As many as `cores` can be divided among, if each shall get enough of a batch of `tokens`; None for one.

    divisible: whether threads may compute the objective on parts of a batch at one time.

    None too where a part of a batch is not computed as in the whole (running statistics, modules that read whole
    batches), where the objective must have the model for itself, and on other devices than a CPU.
    """
    most = max(1, tokens // _FEWEST_TOKENS)
    count = max(count for count in range(1, cores + 1) if cores % count == 0 and count <= most)
    statistics = any(not isinstance(each, nn.Parameter) for each in model.state_dict(keep_vars=True).values())
    whole = any(getattr(module, "reads_whole_batches", False) for module in model.modules())
    if count == 1 or device.type != "cpu" or statistics or whole or not divisible:
        return None
    return Threads(count, cores)
