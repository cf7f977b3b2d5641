"""`FittingBatches`: batches of rows or pairs, which are halved until they fit into memory."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

import torch

from dragoman.base.cancellation import check_cancelled
from dragoman.base.errors import ResourceError
from dragoman.base.machine.memory import available_memory, is_out_of_memory
from dragoman.engines.engine import Pair, Row

Item = TypeVar("Item", Row, Pair)


class FittingBatches(Generic[Item]):
    """Yields batches of items. A batch that does not fit into memory is replaced by its halves.

    A batch is halved if the estimate of its memory exceeds the free memory, or if its computation fails and the caller
    passes the error to `halve`:

        for indices, rows in batches:
            try:
                results = compute(rows)
            except (MemoryError, RuntimeError) as error:
                batches.halve(error)
                continue
    """

    def __init__(
        self,
        items: Sequence[Item],
        batches: Iterable[Sequence[int]],
        estimate_bytes: Callable[[Sequence[Item], int], int],
        device: torch.device,
    ) -> None:
        """batches: the indices of the items of each batch.

        estimate_bytes: estimates the memory for computing some items, given the number of free bytes. It may run the
        model for a measurement, which can exhaust memory too.
        """
        self._items: Sequence[Item] = items
        self._estimate_bytes: Callable[[Sequence[Item], int], int] = estimate_bytes
        self._device = device
        self._waiting = deque(batches)
        self._current: Sequence[int] = ()
        self._needed: int | None = None
        self._free = 0

    def __iter__(self) -> Iterator[tuple[Sequence[int], list[Item]]]:
        """Yield the indices and the items of each batch. Raises Cancelled, and the errors of `halve`."""
        while self._waiting:
            check_cancelled()
            self._current = self._waiting.popleft()
            items = [self._items[index] for index in self._current]
            if self._fits(items):
                yield self._current, items

    def halve(self, error: BaseException | None = None) -> None:
        """Replace the current batch by its halves. error: the failure of its computation, raised unless memory ran out.

        Raises ResourceError for a single item.
        """
        if error is not None:
            if not is_out_of_memory(error):
                raise error
            error.__traceback__ = None  # it would keep the tensors of the failed attempt alive
        if len(self._current) == 1:
            raise _too_large(self._items[self._current[0]], self._needed, self._free) from None
        middle = len(self._current) // 2
        self._waiting.extendleft((self._current[middle:], self._current[:middle]))

    def _fits(self, items: Sequence[Item]) -> bool:
        """Return whether the current batch should fit into memory; if not, halve it."""
        self._free, self._needed = _free_bytes(self._device), None
        try:
            self._needed = self._estimate_bytes(items, self._free)
        except (MemoryError, RuntimeError) as error:
            self.halve(error)
            return False
        if self._needed > self._free:
            self.halve()
            return False
        return True


def _free_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))
    return available_memory()


def _too_large(item: Row | Pair, needed: int | None, free: int) -> ResourceError:
    """Return the error for a single item that does not fit into memory.

    needed: the estimated bytes; None if they could not be estimated.
    """
    tokens = len(item.source) + (len(item.target) if isinstance(item, Pair) else 0)
    about = "" if needed is None else f"about {needed / 2**20:,.0f} MiB needed, "
    return ResourceError(
        f"line {item.number} ({tokens} tokens) does not fit into memory: {about}{free / 2**20:,.0f} MiB free. "
        "Split the line into sentences, use a smaller beam, or free memory"
    )
