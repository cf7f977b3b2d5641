"""Mismatches: pairs whose sides are not translations of each other, found by comparing scores with those of decoys.

Decoys are sources with the targets of other pairs. `MismatchLimit` derives the limit from their scores.

A mismatched pair is in the text from which the scores are learned, and the translations of its sides are not. This must
also be true of the decoys: if their sentences also occurred with their translations, their scores would be lower than
those of mismatched pairs. The decoys are therefore scored after learning from a text in which they replace their pairs,
and the corpus after learning from its own pairs.
"""

import itertools
import math
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman.base.log import quietly, warn
from dragoman.base.progress import Progress
from dragoman.data.batches.permutation import hash_numbers
from dragoman.data.cleaning.chunks import chunk_file, new_array, open_verdicts, read_texts, write_chunk
from dragoman.data.cleaning.mismatch_limit import MismatchLimit
from dragoman.data.workers import Workers, parallel_map

FEWEST_PAIRS = 1000
"""Minimum number of pairs of a corpus whose mismatches are sought. Fewer pairs teach too little about translations."""

SAMPLE = 40_000_000
"""Maximum size in bytes of the text from which the scores are learned. The memory that learning takes grows with it."""

_DECOY_FRACTION, _FEWEST_DECOYS, _MOST_DECOYS = 0.02, 500, 10_000
"""Fraction of the pairs that a set of decoys replaces, and numbers of decoys. It is small because more mismatched pairs
in
the text raise the scores of mismatched pairs. Small corpora have several sets, which are scored one after another."""

_PAIRS_FOR_A_PROCESS = 20_000
_SIDES = ("source", "target")


class PairScoring(Protocol):
    """Scores sentence pairs by how probably their sides are translations of each other. Must be picklable."""

    @property
    def fingerprint(self) -> str:
        """A digest of everything that determines the scores, except the pairs of `learn`."""
        ...

    def learn(self, sources: list[str], targets: list[str], folder: Path) -> None:
        """Learn from pairs of which some are mismatched, and store the result in a new folder."""
        ...

    def score(self, sources: list[str], targets: list[str], folder: Path) -> NDArray[np.float64]:
        """Return a score per pair, as a log-probability per word in nats. folder: the folder of `learn`."""
        ...


@dataclass(frozen=True)
class MismatchSearch:
    """Searches the kept pairs of a corpus for mismatches. folder, starts: as in `CleanedCorpus`."""

    scoring: PairScoring
    folder: Path
    starts: NDArray[np.int64]

    def mark(self, verdicts: NDArray[np.uint8], mark: int, kept_bytes: int, workers: int | None = None) -> str:
        """Write `mark` into `verdicts` for every mismatched pair, and return an explanation for the report.

        verdicts: (n,), 0 for pairs that are kept so far; the array of `open_verdicts`. kept_bytes: size of their text.
        workers: number of processes; None: one per core. The number does not affect the result. Warns if the corpus is
        too small, or if most of its pairs are mismatched.
        """
        kept = sum(int((each == 0).sum()) for each in self._chunks(verdicts))
        if kept < FEWEST_PAIRS:
            warn(f"data.cleaning.mismatched needs at least {FEWEST_PAIRS:,} pairs, but only {kept:,} are left")
            return ""
        decoys = self._decoy_scores(_Sampling.of(kept, kept_bytes))
        scores = new_array(self.folder / "scores.bin", (len(verdicts),), np.float32)
        tasks = ((number, np.array(chunk)) for number, chunk in enumerate(self._chunks(verdicts)))
        with Progress("Scoring", "pairs", len(verdicts)) as progress:
            found = parallel_map(self._chunk_scores, tasks, workers)
            for chunk, values, end in zip(self._chunks(scores), found, self.starts[1:].tolist(), strict=True):
                chunk[:] = values
                progress.update(end)
        limit = MismatchLimit.estimate(self._chunks(scores), decoys)
        for chunk, values in zip(self._chunks(verdicts), self._chunks(scores), strict=True):
            chunk[values <= limit.score] = mark
        if limit.fraction > 0.5:
            warn(
                f"about {limit.fraction:.0%} of the pairs are not translations of each other: check that line n of one "
                "side is a translation of line n of the other side"
            )
        return f"about {limit.fraction:.1%} of the pairs are mismatched; scores up to {limit.score:.2f} are dropped"

    def _chunks(self, values: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """Yield the part of an array of all pairs that belongs to each chunk."""
        for first, last in itertools.pairwise(self.starts.tolist()):
            yield values[first:last]

    def _decoy_scores(self, sampling: "_Sampling") -> NDArray[np.float64]:
        """Learn the scores, unless an earlier call that was killed has done so, and return those of the decoys."""
        path = self.folder / "decoys.npz"
        try:
            with np.load(path) as stored:
                if str(stored["fingerprint"]) == self.scoring.fingerprint:
                    return np.asarray(stored["scores"], np.float64)
        except (OSError, KeyError, ValueError, zipfile.BadZipFile):
            pass
        with Progress("Learning the scores of pairs"):
            if sampling.pairs < _PAIRS_FOR_A_PROCESS:
                scores = self._learn(sampling)
            else:  # a process of its own, whose memory is freed afterwards
                with Workers(self._learn, 1, threads=True) as workers:
                    (scores,) = workers.map([sampling])
        write_chunk(path, {"scores": scores, "fingerprint": np.array(self.scoring.fingerprint)})
        return scores

    def _learn(self, sampling: "_Sampling") -> NDArray[np.float64]:
        """Learn from each set of decoys, and then from the pairs. Returns the scores of the decoys."""
        sample = self._read_sample(sampling)
        scores = []
        for number in range(sampling.sets):
            rows = np.flatnonzero(sample.sets == number)
            decoys = sample.with_targets(rows, np.roll(rows, len(rows) // 2))
            self._learn_pairs(decoys)
            scores.append(self.scoring.score(*decoys.texts(rows), self._model_folder))
        self._learn_pairs(sample)
        return np.concatenate(scores)

    def _learn_pairs(self, sample: "_Sample") -> None:
        shutil.rmtree(self._model_folder, ignore_errors=True)
        with quietly(True):
            self.scoring.learn(*sample.texts(np.flatnonzero(sample.learned)), self._model_folder)

    def _read_sample(self, sampling: "_Sampling") -> "_Sample":
        verdicts = open_verdicts(self.folder)
        texts: tuple[list[str], list[str]] = ([], [])
        learned, sets = [], []
        for number, (first, last) in enumerate(itertools.pairwise(self.starts.tolist())):
            is_learned, set_numbers = sampling.draw(first, last)
            chosen = (verdicts[first:last] == 0) & (is_learned | (set_numbers < sampling.sets))
            learned.append(is_learned[chosen])
            sets.append(set_numbers[chosen])
            for side, column in zip(_SIDES, texts, strict=True):
                column += read_texts(chunk_file(self.folder, number), side, chosen)
        return _Sample(*texts, np.concatenate(learned), np.concatenate(sets))

    def _chunk_scores(self, task: tuple[int, NDArray[np.uint8]]) -> NDArray[np.float32]:
        """Return the scores of the pairs of a chunk; NaN for those that are not kept. task: number and verdicts."""
        number, verdicts = task
        sources, targets = (read_texts(chunk_file(self.folder, number), side, verdicts == 0) for side in _SIDES)
        scores = np.full(len(verdicts), np.nan, np.float32)
        scores[verdicts == 0] = self.scoring.score(sources, targets, self._model_folder)
        return scores

    @property
    def _model_folder(self) -> Path:
        return self.folder / "scoring"


class _Sampling(NamedTuple):
    """How pairs are drawn, by their indices in the corpus.

    pairs: number of pairs from which the scores are learned. rate: their fraction of the corpus. sets: number of sets
    of decoys. set_fraction: fraction of the corpus that each set of decoys replaces.
    """

    pairs: int
    rate: float
    sets: int
    set_fraction: float

    @classmethod
    def of(cls, kept: int, kept_bytes: int) -> "_Sampling":
        """kept, kept_bytes: number and size of the kept pairs."""
        rate = min(1.0, SAMPLE / max(1, kept_bytes))
        size = min(_DECOY_FRACTION * kept, _MOST_DECOYS)
        return cls(round(kept * rate), rate, math.ceil(_FEWEST_DECOYS / size), size / kept)

    def draw(self, first: int, last: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Return whether the scores are learned from each pair of a range, and the set of decoys of each pair.

        Pairs whose number of the set is at least `sets` do not become decoys. Both draws are independent, because the
        scores of a large corpus are learned from a part of its mismatched pairs.
        """
        indices = np.arange(first, last, dtype=np.uint64)
        fractions, positions = (hash_numbers(indices, key) / 2.0**64 for key in (0, 1))
        return fractions < self.rate, (positions / self.set_fraction).astype(np.int64)


class _Sample(NamedTuple):
    """Pairs of a corpus. learned, sets: of each pair, as in `_Sampling.draw`."""

    sources: list[str]
    targets: list[str]
    learned: NDArray[np.bool_]
    sets: NDArray[np.int64]

    def with_targets(self, rows: NDArray[np.int64], others: NDArray[np.int64]) -> "_Sample":
        """Return the sample with the targets of other rows in some rows."""
        targets = list(self.targets)
        for row, other in zip(rows.tolist(), others.tolist(), strict=True):
            targets[row] = self.targets[other]
        return self._replace(targets=targets)

    def texts(self, rows: NDArray[np.int64]) -> tuple[list[str], list[str]]:
        """Return the sources and the targets of rows."""
        return [self.sources[row] for row in rows.tolist()], [self.targets[row] for row in rows.tolist()]
