"""`Resampler`: sentences split anew each time they are read (BPE-dropout), by processes beside the training step."""

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
"""At most so many, and one for every four cores: splitting a batch takes a core about 20 ms."""


class StoredBatch(NamedTuple):
    """A batch as the shards hold it. rows: (B,), the pairs' numbers in the corpus."""

    rows: NDArray[np.int64]
    source: Sentences
    target: Sentences


@dataclass(frozen=True)
class Resampling:
    """Splits a batch. The generator of a pair is made from (seed, epoch, row) alone: no batching changes what it draws.

    longest: tokens of source and target that the model can read, None for any number; a sentence whose new split has
    more of them is given as stored.
    """

    tokenizers: Tokenizers
    seed: int
    longest: tuple[int | None, ...]

    def __call__(self, task: tuple[int, StoredBatch]) -> StoredBatch:
        """task: the epoch and a batch as stored."""
        epoch, (rows, *stored) = task
        generators = [np.random.default_rng((self.seed, epoch, row)) for row in rows.tolist()]
        sides = zip(stored, (self.tokenizers.source, self.tokenizers.target), self.longest, strict=True)
        source, target = (_resampled(side, tokenizer, generators, most) for side, tokenizer, most in sides)
        return StoredBatch(rows, source, target)


class Resampler:
    """Processes that `Resampling` runs in. They are started when they are first needed, and end with `close`."""

    def __init__(
        self,
        tokenizers: Tokenizers,
        seed: int,
        longest: tuple[int | None, ...] = (None, None),
        processes: int | None = None,
    ) -> None:
        """processes: None for as many as there is use for, 0 for none; the result does not depend on it."""
        self._function = Resampling(tokenizers, seed, longest)
        self._count = max(1, min(PROCESSES, available_cores() // 4)) if processes is None else processes
        self._idle: list[Workers[tuple[int, StoredBatch], StoredBatch]] = []
        self._closed = False

    def map(self, epoch: int, batches: Iterable[StoredBatch]) -> Iterator[StoredBatch]:
        """The batches of an epoch, split anew, in their order. Raises ResourceError where a process has died.

        Iterations at the same time have each their own processes.
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
        except BaseException:  # the reader has read enough
            self._put_back(workers)
            raise
        self._put_back(workers)

    def _put_back(self, workers: Workers[tuple[int, StoredBatch], StoredBatch]) -> None:
        self._idle.append(workers)
        if self._closed:
            self.close()

    def close(self) -> None:
        """End the processes; those of an iteration that goes on, when it ends."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()


def _resampled(
    stored: Sentences, tokenizer: Tokenizer, generators: list[np.random.Generator], most: int | None
) -> Sentences:
    if stored.ids.ndim > 1:
        return stored
    sentences = [ids.tolist() for ids in np.split(stored.ids, np.cumsum(stored.lengths)[:-1])]
    split = [tokenizer.resample(ids, rng) for ids, rng in zip(sentences, generators, strict=True)]
    if most is not None:
        split = [old if len(new) > most else new for old, new in zip(sentences, split, strict=True)]
    return Sentences.of(split)
