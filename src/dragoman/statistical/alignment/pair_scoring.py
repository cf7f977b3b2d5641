"""`AlignerScoring`: scores of sentence pairs by a word aligner, for the cleaning rule `mismatched`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dragoman.checkpoint.folder import PARAMETERS, check_serves
from dragoman.data.cleaning.config import CleaningConfig
from dragoman.data.cleaning.mismatches import PairScoring
from dragoman.statistical.alignment.score import score_pairs
from dragoman.statistical.alignment.word_aligner import WordAligner
from dragoman.text.words import split_units


@dataclass(frozen=True)
class AlignerScoring:
    """Implements `PairScoring`. The scores are those of `score_pairs`.

    Words are separated from punctuation, and each character of a script without spaces is a word. aligner: folder of a
    trained aligner; None trains one.
    """

    aligner: Path | None = None

    @property
    def fingerprint(self) -> str:
        """A digest of the aligner. Raises ModelError if `aligner` is not an aligner."""
        return "hmm 2" if self.aligner is None else str(WordAligner.load(self.aligner).settings()["aligner"])

    def learn(self, sources: list[str], targets: list[str], folder: Path) -> None:
        """Train an aligner with default settings on the pairs, unless there is one."""
        if self.aligner is None:
            WordAligner.train(_words(sources), _words(targets))[0].save(folder)

    def score(self, sources: list[str], targets: list[str], folder: Path) -> NDArray[np.float64]:
        """Return the score of each pair. folder: the folder of `learn`."""
        path = self.aligner or folder
        aligner = _load(path, (path / PARAMETERS).stat().st_mtime_ns)
        source_words, target_words = _words(sources), _words(targets)
        aligned = aligner.align_pairs(source_words, target_words, threads=1)
        return np.array(score_pairs(source_words, target_words, aligned), np.float64)


def pair_scoring(cleaning: CleaningConfig) -> PairScoring | None:
    """Return the scoring that the cleaning rules require, or None if they require none.

    Raises ModelError if `cleaning.aligner` is not an aligner.
    """
    if not cleaning.checks_mismatches:
        return None
    if cleaning.aligner is not None:
        check_serves(cleaning.aligner, "align")
    return AlignerScoring(cleaning.aligner)


@lru_cache(maxsize=1)
def _load(folder: Path, _changed: int) -> WordAligner:
    """Load an aligner once per process. _changed: time of the last change, so that a new aligner is loaded again."""
    return WordAligner.load(folder)


def _words(texts: Sequence[str]) -> list[str]:
    """Return the texts with a space between all words and punctuation marks."""
    spans = ((text, split_units(text)) for text in texts)
    return [" ".join(text[start:end] for start, end in units if not text[start:end].isspace()) for text, units in spans]
