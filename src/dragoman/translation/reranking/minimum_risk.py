"""Minimum-risk choice (MBR): the hypothesis that is most like all others, by how likely these are."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import ConfigError
from dragoman.metrics.registry import ngram_metrics
from dragoman.translation.reranking.choice import ordered
from dragoman.translation.result import Translation

Weights = Literal["uniform", "probability"]


class MinimumRisk:
    """argmax_h Σ_r w_r · u(h, r) over the hypotheses h of a text, with each of them as a reference r too.

    u is a sentence's chrF2 or BLEU. The expected utility under the model (Eikema and Aziz 2020, equation 3) is
    estimated by samples that all weigh the same, w = 1/N, a text that was drawn twice twice; or by a list of the most
    probable ones, each by its share of the probability of the list (Kumar and Byrne 2004).
    """

    def __init__(self, utility: str = "chrf", weights: Weights = "uniform") -> None:
        """utility: chrf or bleu; weights: uniform for samples, probability for n-best lists. Raises ConfigError."""
        known = ngram_metrics()
        if utility not in known:
            raise ConfigError(f"there is no utility {utility!r} to choose by: use {' or '.join(known)}")
        self._utility, self._weights = known[utility], weights

    def choose(self, sources: Sequence[str], found: Sequence[list[Translation]]) -> list[list[Translation]]:
        """As `Choice.choose`; the score is the expected utility, 0 to 100."""
        return [ordered(hypotheses, self.expected(hypotheses).tolist()) for hypotheses in found]

    def expected(self, hypotheses: Sequence[Translation]) -> NDArray[np.float64]:
        """(N,): the expected utility of each hypothesis of one text."""
        places: dict[str, int] = {}
        which = np.array([places.setdefault(each.text, len(places)) for each in hypotheses])
        shares = np.bincount(which, self._shares([each.log_probability for each in hypotheses]), len(places))
        return np.asarray((self._utility.pairwise(list(places)) @ shares)[which])

    def settings(self) -> dict[str, Any]:
        """As `Choice.settings`."""
        return {"utility": self._utility.key, "weights": self._weights}

    def _shares(self, log_probabilities: Sequence[float]) -> NDArray[np.float64]:
        values = np.array(log_probabilities)
        likely = np.exp(values - values.max()) if self._weights == "probability" else np.ones(len(values))
        return np.asarray(likely / likely.sum())
