"""`Loader`: the batches of an epoch in plan order, prepared by a thread while the model computes."""

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from dragoman.data.batches.batch import collate
from dragoman.data.batches.plan import BatchPlan
from dragoman.data.batches.resampling import Resampler, StoredBatch
from dragoman.data.batches.shapes import PADDED, BatchShapes
from dragoman.data.dataset import Dataset, DatasetUnion

PREFETCH = 4
"""Number of batches prepared in advance."""

B = TypeVar("B")


@dataclass(frozen=True)
class Loader(Generic[B]):
    """The batches of `plan` from index `start` on. Each iteration runs a separate thread.

    resampler: resamples the splits of sentences for this `epoch`; None: use the stored splits. Resampling makes batches
    longer than planned, by about a third at a dropout of 0.1. pin: whether to put batches in page-locked memory, for a
    GPU. collate: creates a batch from the sides of its rows and the indices of the rows. shapes: applied to each batch.
    """

    dataset: Dataset | DatasetUnion
    plan: BatchPlan
    start: int = 0
    resampler: Resampler | None = None
    epoch: int = 0
    pin: bool = False
    collate: Callable[..., B] = collate  # type: ignore[assignment]
    shapes: BatchShapes = PADDED

    def __len__(self) -> int:
        """Return the number of batches from `start` on."""
        return max(len(self.plan.batches) - self.start, 0)

    def __iter__(self) -> Iterator[B]:
        """Yield batches in plan order. An exception in the thread is raised in place of its batch."""
        ready: queue.Queue[B | BaseException | None] = queue.Queue(maxsize=PREFETCH)
        stopped = threading.Event()
        worker = threading.Thread(target=self._fill, args=(ready, stopped), name="dragoman-loader", daemon=True)
        worker.start()
        try:
            while (item := ready.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        except GeneratorExit:  # abandoned, as after Ctrl-C; another Ctrl-C would be printed as an ignored exception
            stopped.set()
            with suppress(KeyboardInterrupt):
                worker.join()
            raise
        finally:
            stopped.set()
            worker.join()

    def _fill(self, ready: "queue.Queue[B | BaseException | None]", stopped: threading.Event) -> None:
        def put(item: B | BaseException | None) -> bool:
            while not stopped.is_set():
                try:
                    ready.put(item, timeout=0.1)
                    return True
                except queue.Full:
                    continue
            return False

        try:
            with closing(self._batches()) as batches:
                for rows, *sides in batches:
                    batch = self.shapes.apply(self.collate(*sides, rows.tolist()))
                    if not put(batch.pin_memory() if self.pin else batch):
                        return
            put(None)
        except BaseException as error:  # the consumer raises it
            put(error)

    def _batches(self) -> Generator[tuple[Any, ...], None, None]:
        plans = map(self.plan.batches.__getitem__, range(self.start, len(self.plan.batches)))
        if self.resampler is None:
            yield from ((rows, *self.dataset.take(rows)) for rows in plans)
        else:
            yield from self.resampler.map(self.epoch, (StoredBatch(rows, *self.dataset.take(rows)) for rows in plans))
