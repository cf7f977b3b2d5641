"""Minimum Bayes risk (MBR): the hypothesis with the highest expected similarity to all others."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import ConfigError
from dragoman.inference.translation.result import Translation, ordered
from dragoman.metrics.bleu_tokenizer import DEFAULT, choose_tokenizer
from dragoman.metrics.registry import ngram_metrics

Weights = Literal["uniform", "probability"]


class MinimumRisk:
    """argmax_h Σ_r w_r · u(h, r) over the hypotheses h of a text, each of which is also a reference r.

    u is sentence-level chrF2, BLEU or any other `NgramMetric`. BLEU's tokeniser is chosen by the target language. The
    expected utility under the model (Eikema and Aziz 2020, equation 3) is estimated from samples or from an n-best
    list. Samples have equal weights, w = 1/N, so a text that was drawn twice counts twice. In an n-best list, each
    hypothesis is weighted by its proportion of the list's probability (Kumar and Byrne 2004).
    """

    def __init__(self, utility: str = "chrf", weights: Weights = "uniform", language: str | None = None) -> None:
        """utility: the key of an n-gram metric; weights: uniform for samples, probability for n-best lists.

        language: the target language; None: BLEU's tokeniser is chosen by the hypotheses of each text. Raises
        ConfigError for an unknown utility.
        """
        known = ngram_metrics()
        if utility not in known:
            raise ConfigError(f"unknown utility {utility!r}: use {' or '.join(known)}")
        self._utility, self._weights, self._language = known[utility], weights, language

    def choose(self, sources: Sequence[str], found: Sequence[list[Translation]]) -> list[list[Translation]]:
        """See `Choice.choose`. The score is the expected utility, from 0 to 100."""
        return [ordered(hypotheses, self.expected(hypotheses).tolist()) for hypotheses in found]

    def expected(self, hypotheses: Sequence[Translation]) -> NDArray[np.float64]:
        """Return the expected utility (N,) of each hypothesis of one text."""
        texts: dict[str, int] = {}
        which = np.array([texts.setdefault(each.text, len(texts)) for each in hypotheses])
        weights = np.bincount(which, self._weights_of([each.log_probability for each in hypotheses]), len(texts))
        utility = self._utility.with_tokenizer(choose_tokenizer(self._language, [list(texts)]).name)
        return np.asarray((utility.pairwise(list(texts)) @ weights)[which])

    def settings(self) -> dict[str, Any]:
        """See `Choice.settings`."""
        settings = {"utility": self._utility.key, "weights": self._weights}
        tokenizer = choose_tokenizer(self._language, []).name
        uses_default = tokenizer == DEFAULT or self._utility.with_tokenizer(tokenizer) is self._utility
        return settings if uses_default else {**settings, "tokenizer": tokenizer}

    def _weights_of(self, log_probabilities: Sequence[float]) -> NDArray[np.float64]:
        values = np.array(log_probabilities)
        likely = np.exp(values - values.max()) if self._weights == "probability" else np.ones(len(values))
        return np.asarray(likely / likely.sum())
