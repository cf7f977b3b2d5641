"""`CorpusLengths`: the lengths of a corpus's lines, by which the lengths of translations are judged."""

from collections import Counter
from collections.abc import Sequence
from math import sqrt
from typing import Literal

import numpy as np
import regex
from numpy.typing import NDArray
from pydantic import Field

from dragoman.base.settings.config import Config

MIN_PAIRS = 500
"""Minimum number of pairs from which lengths are judged. Fewer pairs do not represent a language pair."""

_SHORT_DEVIATION, _LONG_DEVIATION = 4.0, 5.0
_SHORT_RATIO, _LONG_RATIO = 0.6, 1.8
_MIN_SPREAD = 0.5
_SIGMA = 0.8413, 0.1587
"""Quantiles at one standard deviation above and below the mean of a normal distribution."""

_WORD = regex.compile(r"[^\s\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}]{2,}")


class LengthQuantiles(Config):
    """Quantiles of the lengths of one side of the pairs."""

    median: int = Field(ge=0, description="Median length.")
    q99: int = Field(ge=0, description="Length that 99% of the texts do not exceed.")
    maximum: int = Field(ge=0, description="Maximum length.")

    @staticmethod
    def of(lengths: NDArray[np.int32]) -> "LengthQuantiles":
        """Return the quantiles of at least one length."""
        counts = np.bincount(lengths)
        ends = np.cumsum(counts)
        median, q99 = (int(np.searchsorted(ends, fraction * ends[-1])) for fraction in (0.5, 0.99))
        return LengthQuantiles(median=median, q99=q99, maximum=len(counts) - 1)


class LengthRatio(Config):
    """The ratio of target to source lengths, and how much the lengths of targets vary.

    Gale and Church 1993, "A Program for Aligning Sentences in Bilingual Corpora", section 3.2: the target of a source
    of s characters has c·s characters on average, with a variance that is proportional to s. Medians and quantiles
    replace means and variances, so that faulty pairs have little influence.
    """

    median: float = Field(gt=0, description="Median ratio of the target's length to the source's.")
    spread: float = Field(
        ge=0, description="Standard deviation of the target's length, divided by the square root of its expected value."
    )

    @staticmethod
    def of(sources: NDArray[np.float64], targets: NDArray[np.float64]) -> "LengthRatio":
        """Return the ratio of the lengths of at least one pair. All lengths must be greater than 0."""
        median = float(np.median(targets / sources))
        expected = median * sources
        above, below = np.quantile((targets - expected) / np.sqrt(expected), _SIGMA)
        return LengthRatio(median=round(median, 4), spread=round(float(above - below) / 2, 4))

    def deviation(self, source: float, target: float) -> float:
        """Return the deviation of a target's length from its expected value, in standard deviations."""
        expected = self.median * source
        return (target - expected) / (max(self.spread, _MIN_SPREAD) * sqrt(expected))


Verdict = Literal["short", "long"]


class CorpusLengths(Config):
    """The lengths of the pairs of a training corpus."""

    pairs: int = Field(ge=1, description="Number of pairs.")
    source_tokens: LengthQuantiles = Field(description="Lengths of the sources in tokens, without tags.")
    target_tokens: LengthQuantiles = Field(description="Lengths of the targets in tokens.")
    source_characters: LengthQuantiles = Field(description="Lengths of a sample of the sources in characters.")
    target_characters: LengthQuantiles = Field(description="Lengths of a sample of the targets in characters.")
    token_ratio: LengthRatio = Field(description="Ratio of the lengths in tokens.")
    character_ratio: LengthRatio = Field(
        description="Ratio of the lengths in characters, without the words that both sides contain."
    )

    @staticmethod
    def of(tokens: NDArray[np.int32], texts: Sequence[tuple[str, str]]) -> "CorpusLengths | None":
        """Return the lengths of a corpus, or None if it has no pair without a blank side.

        tokens: (N, 2), numbers of tokens of all pairs, without tags. texts: a sample of the pairs.
        """
        compared = np.array([compared_lengths(*pair) for pair in texts], np.float64).reshape(-1, 2)
        compared = compared[(compared > 0).all(1)]
        nonblank = tokens[(tokens > 0).all(1)]
        if not len(compared) or not len(nonblank):
            return None
        characters = np.array([[len(text) for text in pair] for pair in texts], np.int32)
        return CorpusLengths(
            pairs=len(tokens),
            source_tokens=LengthQuantiles.of(tokens[:, 0]),
            target_tokens=LengthQuantiles.of(tokens[:, 1]),
            source_characters=LengthQuantiles.of(characters[:, 0]),
            target_characters=LengthQuantiles.of(characters[:, 1]),
            token_ratio=LengthRatio.of(nonblank[:, 0].astype(np.float64), nonblank[:, 1].astype(np.float64)),
            character_ratio=LengthRatio.of(compared[:, 0], compared[:, 1]),
        )

    @property
    def is_representative(self) -> bool:
        """Whether there are enough pairs to judge other texts by their lengths."""
        return self.pairs >= MIN_PAIRS

    def judge(self, source: str, target: str) -> Verdict | None:
        """Return whether a translation is much too short or too long for its source; None if it is neither.

        A length is judged by two criteria, both of which must be met: its deviation in standard deviations, which
        excuses short texts, and its ratio, which excuses long ones. Both thresholds were chosen on human translations
        (docs/explanation/guard.md). Words that both texts contain, such as addresses, are ignored.
        """
        if not self.is_representative:
            return None
        source_length, target_length = compared_lengths(source, target)
        if source_length == 0:
            return None
        deviation = self.character_ratio.deviation(source_length, target_length)
        ratio = target_length / (self.character_ratio.median * source_length)
        if deviation < -_SHORT_DEVIATION and ratio < _SHORT_RATIO:
            return "short"
        return "long" if deviation > _LONG_DEVIATION and ratio > _LONG_RATIO else None


def compared_lengths(source: str, target: str) -> tuple[int, int]:
    """Return the numbers of characters of both texts, without surrounding spaces and without words that both contain.

    Words of scripts without spaces are not compared.
    """
    common = Counter(_WORD.findall(source)) & Counter(_WORD.findall(target))
    copied = sum(len(word) * count for word, count in common.items())
    return len(source.strip()) - copied, len(target.strip()) - copied
