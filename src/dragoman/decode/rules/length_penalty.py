"""Length penalties: divisors of a hypothesis' summed log-probability."""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dragoman.base.settings.config import Config
from dragoman.decode.rules.rule import Endings, Scoring
from dragoman.models.interface import TensorTree


class GNMTPenalty(Config):
    """((5 + length) / 6) ** alpha (Wu et al. 2016, section 7). The length includes the end-of-sentence symbol."""

    kind: Literal["gnmt"] = Field(default="gnmt", description="Kind of length penalty.")
    alpha: float = Field(
        default=0.6,
        ge=0,
        le=10,
        allow_inf_nan=False,
        description="Exponent (no unit), at most 10; 0 compares sums of log-probabilities. Default: Vaswani et al. "
        "2017, section 6.1.",
    )

    def divisor(self, length: int) -> float:
        """Return the divisor for a hypothesis of `length` tokens; it never decreases with the length."""
        return float(((5 + length) / 6) ** self.alpha)


class MeanLogProbability(Config):
    """The output length, so that a score is the mean log-probability per token."""

    kind: Literal["mean"] = Field(default="mean", description="Kind of length penalty.")

    def divisor(self, length: int) -> float:
        """Return the divisor for a hypothesis of `length` tokens; it never decreases with the length."""
        return float(max(length, 1))


class NoPenalty(Config):
    """Constant 1, so that a score is the sum of the log-probabilities."""

    kind: Literal["none"] = Field(default="none", description="Kind of length penalty.")

    def divisor(self, length: int) -> float:
        """Return 1 for every `length`."""
        return 1.0


LengthPenalty = Annotated[GNMTPenalty | MeanLogProbability | NoPenalty, Field(discriminator="kind")]
"""A length penalty must not decrease with the length, because the exact stopping rule of the search relies on this."""


class LengthNormalisation(Scoring):
    """Divides each hypothesis' score by the length penalty of its sentence."""

    def __init__(self, penalties: Sequence[LengthPenalty], limits: Sequence[int] | NDArray[np.int64]) -> None:
        """limits: maximum output length of each sentence in tokens, including EOS."""
        self._penalties = penalties
        self._largest = np.array(
            [penalty.divisor(int(limit)) for penalty, limit in zip(penalties, limits, strict=True)]
        )

    def score(self, scores: NDArray[np.float64], ended: Endings, state: TensorTree) -> NDArray[np.float64]:
        """Divide each score by the penalty for the length of its hypothesis."""
        divisors = [
            self._penalties[sentence].divisor(length)
            for sentence, length in zip(ended.sentences.tolist(), ended.lengths.tolist(), strict=True)
        ]
        return np.divide(scores, divisors)

    def bound(self, bounds: NDArray[np.float64], sentences: NDArray[np.int64]) -> NDArray[np.float64]:
        """Divide each bound, which is never above 0 and never increases, by the largest possible penalty."""
        largest: NDArray[np.float64] = self._largest[sentences]
        return bounds / largest
