"""`Threads`, a thread pool that computes the gradients of the parts of a batch in parallel, and the use of one core."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import nn

Work = TypeVar("Work")
Result = TypeVar("Result")

_MIN_TOKENS = 256
"""Minimum number of target tokens per thread. With fewer tokens, summing the threads' gradients takes too long: of 512
tokens, two threads computed 12% more per second than one operation at a time (docs/EXPERIMENTS.md)."""


_SERIAL = 10_000_000
"""Number of elements below which a pass over all parameters uses one core."""


@contextmanager
def one_core_for(elements: int) -> Iterator[None]:
    """Use one core for PyTorch's operations in this thread within this context, if they are short.

    Operations that cores share end with a barrier, at which the other cores spin until the next one. If something else
    needs a core, the barrier of a pass over 4 million numbers lasts up to 0.1 s instead of 2 ms (docs/EXPERIMENTS.md).

    elements: number of elements of an operation.
    """
    cores = torch.get_num_threads()
    if elements >= _SERIAL or cores == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(cores)


class Threads:
    """A thread pool for data parallelism within a process.

    If all cores share each operation, they synchronise thousands of times per update. Threads that each process a part
    of the batch synchronise only once. They are faster on an idle machine, and several times as fast on a busy machine,
    where the slowest core delays the others at every synchronisation (docs/EXPERIMENTS.md).
    """

    def __init__(self, count: int, cores: int) -> None:
        """count: number of threads; each gets cores // count cores."""
        self.count, self._cores = count, max(1, cores // count)
        self._pool = ThreadPoolExecutor(
            count, "dragoman-thread", initializer=torch.set_num_threads, initargs=(self._cores,)
        )

    def map(self, function: Callable[[Work], Result], shares: Sequence[Work], parallel: bool = True) -> list[Result]:
        """Apply `function` to each share and return the results in order. Errors are raised once all threads are done.

        parallel: whether to use the threads. If False, the calling thread computes the shares one after another, for
        profiling.
        """
        if not parallel:
            previous = torch.get_num_threads()
            torch.set_num_threads(self._cores)
            try:
                return [function(share) for share in shares]
            finally:
                torch.set_num_threads(previous)
        futures: list[Future[Result]] = [self._pool.submit(function, share) for share in shares]
        wait(futures)
        return [future.result() for future in futures]

    def close(self) -> None:
        """Stop the threads."""
        self._pool.shutdown()


def build_threads(model: nn.Module, divisible: bool, device: torch.device, cores: int, tokens: int) -> Threads | None:
    """Build the largest thread pool whose size divides `cores` and that gives each thread at least `_MIN_TOKENS`.

    Returns None if the pool would have one thread, if the device is not a CPU, if the result for a part of a batch
    depends on the rest of the batch (running statistics, modules that read whole batches), or if the objective needs
    exclusive use of the model.

    tokens: number of tokens to divide among the threads.
    divisible: whether threads may compute the objective on parts of a batch at the same time.
    """
    largest = max(1, tokens // _MIN_TOKENS)
    count = max(count for count in range(1, cores + 1) if cores % count == 0 and count <= largest)
    has_statistics = any(not isinstance(each, nn.Parameter) for each in model.state_dict(keep_vars=True).values())
    reads_whole_batches = any(getattr(module, "reads_whole_batches", False) for module in model.modules())
    if count == 1 or device.type != "cpu" or has_statistics or reads_whole_batches or not divisible:
        return None
    return Threads(count, cores)
