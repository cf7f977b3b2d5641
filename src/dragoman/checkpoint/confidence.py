"""`Confidence`: what the probability of a translation says about its quality, measured on the validation set."""

from collections.abc import Sequence
from typing import Self

import numpy as np
from pydantic import Field

from dragoman.base.settings.config import Config

FEWEST_SENTENCES = 100
"""Number of sentences below which nothing is concluded."""

_WEAKEST = 0.2
"""Correlation below which the probability says too little about the quality."""

_UNUSUAL = 0.01
"""Fraction of the translations of the validation set whose probability counts as unusually low."""


class Confidence(Config):
    """The expected chrF of a translation, a linear function of its log-probability per token.

    The log-probability is the simplest of the estimates without references that Fomicheva et al. 2020 compare
    ("Unsupervised Quality Estimation for Neural Machine Translation", section 4.1: TP).
    """

    system: str = Field(description="Name of the system of the folder that was measured.")
    intercept: float = Field(description="Expected chrF of a translation with log-probability 0.")
    slope: float = Field(description="Change of the expected chrF per nat of the log-probability per token.")
    lowest: float = Field(description="Log-probability per token that 99% of the translations exceed.")
    correlation: float = Field(description="Pearson's correlation of the log-probability per token and chrF.")
    sentences: int = Field(description="Number of sentences of the validation set that were measured.")
    mean: float = Field(description="Mean chrF of these sentences.")
    spelled_out: float = Field(
        0.0, description="Letters per subword of a word that all but 0.2% of the longer words of the set reach."
    )

    @classmethod
    def fitted(cls, system: str, log_probabilities: Sequence[float], chrf: Sequence[float]) -> Self | None:
        """Fit the function by least squares. Return None if there are too few sentences or no clear correlation.

        log_probabilities: per token, of each translation. chrf: the chrF of each translation, 0 to 100.
        """
        x, y = np.asarray(log_probabilities, float), np.asarray(chrf, float)
        if len(x) < FEWEST_SENTENCES or not (np.ptp(x) > 0 and np.ptp(y) > 0):
            return None
        correlation = float(np.corrcoef(x, y)[0, 1])
        if correlation < _WEAKEST:
            return None
        slope, intercept = np.polyfit(x, y, 1)
        return cls(
            system=system,
            intercept=float(intercept),
            slope=float(slope),
            lowest=float(np.quantile(x, _UNUSUAL)),
            correlation=correlation,
            sentences=len(x),
            mean=float(y.mean()),
        )

    def expected(self, log_probability: float) -> float:
        """Return the expected chrF (0 to 100) of a translation. log_probability: per token, in nats."""
        return min(100.0, max(0.0, self.intercept + self.slope * log_probability))


def per_token(log_probability: float, tokens: int) -> float:
    """Return the log-probability per token, including the end of the sentence."""
    return log_probability / (tokens + 1)
