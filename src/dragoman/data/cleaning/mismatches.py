"""Mismatches: pairs whose sides are not translations of each other, found by comparing scores with those of decoys.

Decoys are sources with the targets of other pairs. The distribution of their scores is that of mismatched pairs, so the
share of mismatched pairs in a corpus, and the share of good pairs below a score, can be estimated without knowing which
pairs are good. Source of the method: Elias and Gygi 2007, "Target-decoy search strategy for increased confidence in
large-scale protein identifications by mass spectrometry".
"""

import itertools
import math
import shutil
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman.base.log import quietly, warn
from dragoman.base.progress import Progress
from dragoman.data.batches.permutation import hash_numbers
from dragoman.data.cleaning.blocks import block_file, new_array, open_verdicts, read_texts, write_block
from dragoman.data.workers import Workers, parallel_map

FEWEST_PAIRS = 1000
"""Minimum number of pairs of a corpus whose mismatches are sought. Fewer pairs teach too little about translations."""

MAX_LOSS = 0.02
"""Maximum share of the good pairs that may be dropped, by estimate."""

SAMPLE = 40_000_000
"""Maximum size in bytes of the text from which the scores are learned. The memory that learning takes grows with it."""

_PAIRS_PER_DECOY, _FEWEST_DECOYS, _MOST_DECOYS = 20, 500, 10_000
_MOST_SHARE = 0.97
_PAIRS_FOR_A_PROCESS = 20_000
_LOWEST, _BINS_PER_UNIT = -30, 100
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


class MismatchLimit(NamedTuple):
    """The highest score at which pairs are dropped. share: estimated share of mismatched pairs in the corpus."""

    score: float
    share: float

    @classmethod
    def estimate(cls, scores: Iterable[NDArray[np.floating]], decoys: NDArray[np.floating]) -> "MismatchLimit":
        """Estimate the limit from the scores of a corpus and those of decoys.

        If F(x) and D(x) are the shares of the pairs and of the decoys with scores of at most x, and m is the share of
        mismatched pairs, the share of good pairs that are lost is (F(x) - m · D(x)) / (1 - m). m is F(x) / D(x) at low
        scores, which good pairs do not have. The limit is the highest score at which at most MAX_LOSS of the good pairs
        are lost and at least half of the dropped pairs are mismatched.
        """
        pairs = _cumulative_shares(scores)
        mismatched = _cumulative_shares([decoys])
        low = [int(np.searchsorted(mismatched, quantile)) for quantile in (0.25, 0.5)]
        share = min(_MOST_SHARE, *(float(pairs[each] / mismatched[each]) for each in low))
        lost = (pairs - share * mismatched) / (1 - share)
        allowed = (lost <= MAX_LOSS) & (2 * share * mismatched >= pairs) & (pairs > 0)
        score = _LOWEST + int(np.flatnonzero(allowed)[-1]) / _BINS_PER_UNIT if allowed.any() else -math.inf
        return cls(score, share)


def _cumulative_shares(scores: Iterable[NDArray[np.floating]]) -> NDArray[np.float64]:
    """Return the shares of scores that are at most each hundredth from _LOWEST to 0. NaNs do not count."""
    counts = np.zeros(1 - _LOWEST * _BINS_PER_UNIT, np.int64)
    for each in scores:
        bins = np.ceil((each[~np.isnan(each)].astype(np.float64) - _LOWEST) * _BINS_PER_UNIT)
        counts += np.bincount(np.clip(bins, 0, len(counts) - 1).astype(np.int64), minlength=len(counts))
    shares: NDArray[np.float64] = counts.cumsum() / max(1, counts.sum())
    return shares


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
        kept = sum(int((each == 0).sum()) for each in self._blocks(verdicts))
        if kept < FEWEST_PAIRS:
            warn(f"data.cleaning.mismatched needs at least {FEWEST_PAIRS:,} pairs, but only {kept:,} are left")
            return ""
        decoys = self._decoy_scores(kept, min(1.0, SAMPLE / max(1, kept_bytes)))
        scores = new_array(self.folder / "scores.bin", (len(verdicts),), np.float32)
        tasks = ((number, np.array(block)) for number, block in enumerate(self._blocks(verdicts)))
        with Progress("Scoring", "pairs", len(verdicts)) as progress:
            found = parallel_map(self._block_scores, tasks, workers)
            for block, values, end in zip(self._blocks(scores), found, self.starts[1:].tolist(), strict=True):
                block[:] = values
                progress.update(end)
        limit = MismatchLimit.estimate(self._blocks(scores), decoys)
        for block, values in zip(self._blocks(verdicts), self._blocks(scores), strict=True):
            block[values <= limit.score] = mark
        if limit.share > 0.5:
            warn(
                f"about {limit.share:.0%} of the pairs are not translations of each other: check that line n of one "
                "side is a translation of line n of the other side"
            )
        return f"about {limit.share:.1%} of the pairs are mismatched; scores of at most {limit.score:.2f} are dropped"

    def _blocks(self, values: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """Yield the part of an array of all pairs that belongs to each block."""
        for first, last in itertools.pairwise(self.starts.tolist()):
            yield values[first:last]

    def _decoy_scores(self, kept: int, rate: float) -> NDArray[np.float64]:
        """Learn the scores, unless an earlier call that was killed has done so, and return those of the decoys."""
        path = self.folder / "decoys.npz"
        try:
            with np.load(path) as stored:
                if str(stored["fingerprint"]) == self.scoring.fingerprint:
                    return np.asarray(stored["scores"], np.float64)
        except (OSError, KeyError, ValueError, zipfile.BadZipFile):
            pass
        with Progress("Learning the scores of pairs"):
            if kept * rate < _PAIRS_FOR_A_PROCESS:
                scores = self._learn(rate)
            else:  # a process of its own, whose memory is freed afterwards
                with Workers(self._learn, 1, threads=True) as workers:
                    (scores,) = workers.map([rate])
        write_block(path, {"scores": scores, "fingerprint": np.array(self.scoring.fingerprint)})
        return scores

    def _learn(self, rate: float) -> NDArray[np.float64]:
        """Learn from a sample of the pairs and from decoys. Returns the scores of the decoys."""
        verdicts, texts = open_verdicts(self.folder), ([], [])  # type: tuple[NDArray[np.uint8], tuple[list[str], list[str]]]
        for number, first in enumerate(self.starts[:-1].tolist()):
            block = verdicts[first : int(self.starts[number + 1])]
            draws = hash_numbers(np.arange(first, first + len(block), dtype=np.uint64), 0)
            chosen = (block == 0) & (draws < np.uint64(min(rate * 2**64, 2**64 - 1)))
            for side, column in zip(_SIDES, texts, strict=True):
                column += read_texts(block_file(self.folder, number), side, chosen)
        sources, targets = texts
        count = min(max(_FEWEST_DECOYS, len(sources) // _PAIRS_PER_DECOY), _MOST_DECOYS, len(sources) // 2)
        rows = [number * len(sources) // count for number in range(count)]
        decoy_sources = [sources[row] for row in rows]
        decoy_targets = [targets[row] for row in rows[count // 2 :] + rows[: count // 2]]
        folder = self._model_folder
        shutil.rmtree(folder, ignore_errors=True)
        with quietly(True):
            self.scoring.learn(sources + decoy_sources, targets + decoy_targets, folder)
        return self.scoring.score(decoy_sources, decoy_targets, folder)

    def _block_scores(self, task: tuple[int, NDArray[np.uint8]]) -> NDArray[np.float32]:
        """Return the scores of the pairs of a block; NaN for those that are not kept. task: number and verdicts."""
        number, verdicts = task
        sources, targets = (read_texts(block_file(self.folder, number), side, verdicts == 0) for side in _SIDES)
        scores = np.full(len(verdicts), np.nan, np.float32)
        scores[verdicts == 0] = self.scoring.score(sources, targets, self._model_folder)
        return scores

    @property
    def _model_folder(self) -> Path:
        return self.folder / "scoring"
