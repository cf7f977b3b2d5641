"""`Resampler`: splits sentences differently each time they are read (BPE-dropout), in parallel with training."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.data.dataset import Sentences
from dragoman.data.workers import Workers, available_cores
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import Tokenizers

PROCESSES = 4
"""Maximum number of processes, with one process per four cores. Splitting a batch takes about 20 ms on one core."""


class StoredBatch(NamedTuple):
    """A batch with the splits that are stored in the dataset. rows: (B,), indices of the pairs."""

    rows: NDArray[np.int64]
    source: Sentences
    target: Sentences


@dataclass(frozen=True)
class Resampling:
    """Resamples the splits of a batch. The generator of a pair is seeded by (seed, epoch, row), whatever the batch.

    longest: maximum numbers of source and target tokens that the model supports; None: no limit. A sentence whose new
    split is longer keeps its stored split.
    """

    tokenizers: Tokenizers
    seed: int
    longest: tuple[int | None, ...]

    def __call__(self, task: tuple[int, StoredBatch]) -> StoredBatch:
        """Resample a batch. task: the epoch and a stored batch."""
        epoch, (rows, *stored) = task
        generators = [np.random.default_rng((self.seed, epoch, row)) for row in rows.tolist()]
        sides = zip(stored, (self.tokenizers.source, self.tokenizers.target), self.longest, strict=True)
        source, target = (_resample(side, tokenizer, generators, limit) for side, tokenizer, limit in sides)
        return StoredBatch(rows, source, target)


class Resampler:
    """Runs `Resampling` in processes, which are started by the first iteration and ended by `close`."""

    def __init__(
        self,
        tokenizers: Tokenizers,
        seed: int,
        longest: tuple[int | None, ...] = (None, None),
        processes: int | None = None,
    ) -> None:
        """processes: number of processes, which does not affect the result; None: automatic; 0: the current process."""
        self._function = Resampling(tokenizers, seed, longest)
        self._count = max(1, min(PROCESSES, available_cores() // 4)) if processes is None else processes
        self._idle: list[Workers[tuple[int, StoredBatch], StoredBatch]] = []
        self._closed = False

    def map(self, epoch: int, batches: Iterable[StoredBatch]) -> Iterator[StoredBatch]:
        """Yield the resampled batches of an epoch, in order. Raises ResourceError if a process dies.

        Concurrent iterations use separate processes.
        """
        tasks = ((epoch, batch) for batch in batches)
        if self._count == 0:
            yield from map(self._function, tasks)
            return
        workers = self._idle.pop() if self._idle else Workers(self._function, self._count)
        try:
            yield from workers.map(tasks)
        except Exception:
            workers.close()
            raise
        except BaseException:  # the consumer stopped early
            self._put_back(workers)
            raise
        self._put_back(workers)

    def _put_back(self, workers: Workers[tuple[int, StoredBatch], StoredBatch]) -> None:
        self._idle.append(workers)
        if self._closed:
            self.close()

    def close(self) -> None:
        """End the processes. The processes of a running iteration end when the iteration ends."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()


def _resample(
    stored: Sentences, tokenizer: Tokenizer, generators: list[np.random.Generator], limit: int | None
) -> Sentences:
    if stored.ids.ndim > 1:
        return stored
    sentences = [ids.tolist() for ids in np.split(stored.ids, np.cumsum(stored.lengths)[:-1])]
    split = [tokenizer.resample(ids, rng) for ids, rng in zip(sentences, generators, strict=True)]
    if limit is not None:
        split = [old if len(new) > limit else new for old, new in zip(sentences, split, strict=True)]
    return Sentences.of(split)
