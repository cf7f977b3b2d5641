"""`Loader`: the batches of an epoch in plan order, made ready by a thread while the model computes."""

import queue
import threading
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass

from dragoman.data.batches.batch import Batch, collate
from dragoman.data.batches.plan import BatchPlan
from dragoman.data.batches.resampling import Resampler, Stored
from dragoman.data.shards import Dataset
from dragoman.data.union import DatasetUnion

AHEAD = 4
"""Batches made before they are asked for."""


@dataclass(frozen=True)
class Loader:
    """The batches of `plan` from index `start` on; each iteration runs its own thread, which ends with it.

    resampler: with it, sentences are split anew in this `epoch`. A batch is then longer than planned, by a third or so
    at a rate of 0.1. None: as stored. pin: batches lie in page-locked memory, for a GPU.
    """

    dataset: Dataset | DatasetUnion
    plan: BatchPlan
    start: int = 0
    resampler: Resampler | None = None
    epoch: int = 0
    pin: bool = False

    def __len__(self) -> int:
        """Batches from `start` on."""
        return max(len(self.plan.batches) - self.start, 0)

    def __iter__(self) -> Iterator[Batch]:
        """Batches in plan order. An exception of the thread is raised here, where its batch would have come."""
        ready: queue.Queue[Batch | BaseException | None] = queue.Queue(maxsize=AHEAD)
        stopped = threading.Event()
        worker = threading.Thread(target=self._fill, args=(ready, stopped), name="dragoman-loader", daemon=True)
        worker.start()
        try:
            while (item := ready.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            stopped.set()
            worker.join()

    def _fill(self, ready: "queue.Queue[Batch | BaseException | None]", stopped: threading.Event) -> None:
        def put(item: Batch | BaseException | None) -> bool:
            while not stopped.is_set():
                try:
                    ready.put(item, timeout=0.1)
                    return True
                except queue.Full:
                    continue
            return False

        try:
            with closing(self._batches()) as batches:
                for rows, source, target in batches:
                    batch = collate(source, target, rows.tolist())
                    if not put(batch.pinned() if self.pin else batch):
                        return
            put(None)
        except BaseException as error:  # the consumer raises it
            put(error)

    def _batches(self) -> Generator[Stored, None, None]:
        stored = map(self._stored, range(self.start, len(self.plan.batches)))
        yield from stored if self.resampler is None else self.resampler.map(self.epoch, stored)

    def _stored(self, index: int) -> Stored:
        rows = self.plan.batches[index]
        return Stored(rows, *self.dataset.take(rows))
