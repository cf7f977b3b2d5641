"""`Loader`: the batches of an epoch in plan order, made ready by a thread while the model computes."""

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dragoman.data.batch import Batch, collate
from dragoman.data.plan import BatchPlan
from dragoman.data.shards import PairDataset
from dragoman.text.tokenizers import Tokenizers

AHEAD = 4
"""Batches made before they are asked for."""


@dataclass(frozen=True)
class Loader:
    """The batches of `plan` from index `start` on; each iteration runs its own thread, which ends with it.

    tokenizers: with them, sentences are split anew by BPE-dropout at the tokenizers' rate; the generator of a pair is
    made from (seed, epoch, row) alone, so neither batching nor resuming changes it. A batch is then longer than
    planned, by a third or so at a rate of 0.1. None: as stored. longest: tokens of source and target that the model can
    read, None for any number; a sentence whose new split has more of them is given as stored.
    """

    dataset: PairDataset
    plan: BatchPlan
    start: int = 0
    tokenizers: Tokenizers | None = None
    seed: int = 0
    epoch: int = 0
    longest: tuple[int | None, ...] = (None, None)

    def __len__(self) -> int:
        """Batches from `start` on."""
        return max(len(self.plan.batches) - self.start, 0)

    def batch(self, index: int) -> Batch:
        """The batch at `index` of the plan, made in the calling thread."""
        rows = self.plan.batches[index].tolist()
        pairs = [self._pair(row) for row in rows]
        return collate([source for source, _ in pairs], [target for _, target in pairs], rows)

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
            for index in range(self.start, len(self.plan.batches)):
                if not put(self.batch(index)):
                    return
            put(None)
        except BaseException as error:  # the consumer raises it
            put(error)

    def _pair(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        source, target = self.dataset[row]
        if self.tokenizers is None:
            return source, target
        rng = np.random.default_rng((self.seed, self.epoch, row))
        split = (
            source if source.ndim > 1 else np.asarray(self.tokenizers.source.resample(source.tolist(), rng), np.int64),
            np.asarray(self.tokenizers.target.resample(target.tolist(), rng), dtype=np.int64),
        )
        source, target = (
            stored if most is not None and len(new) > most else new
            for stored, new, most in zip((source, target), split, self.longest, strict=True)
        )
        return source, target
