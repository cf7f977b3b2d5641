"""Loss and perplexity: metrics of a model's log-probabilities of held-out text."""

from collections.abc import Mapping, Sequence
from math import exp
from typing import ClassVar

from dragoman.metrics.metric import Metric, Need, Outputs, Score
from dragoman.metrics.text_score import TextScore

_LARGEST = 700.0
"""Nats; e to this power is about the largest float."""


class _LogProbabilityMetric(Metric):
    """A metric of the summed log-probability alone."""

    better = "lower"
    needs: ClassVar[frozenset[Need]] = frozenset({"log-probabilities"})

    def value(self, outputs: Outputs) -> float:
        """Of the likelihood."""
        assert outputs.likelihood is not None
        return self.of(outputs.likelihood)

    def of(self, likelihood: TextScore) -> float:
        """The value for a text's log-probability."""
        raise NotImplementedError


class Loss(_LogProbabilityMetric):
    """Cross-entropy without label smoothing, in nats per token."""

    key, name, digits, unit = "loss", "loss", 4, "nats per token"

    def of(self, likelihood: TextScore) -> float:
        """−log p / tokens."""
        return -likelihood.log_probability / likelihood.tokens


class Perplexity(_LogProbabilityMetric):
    """exp(loss): as uncertain as a choice among that many equally likely tokens."""

    key, name, unit, restates = "perplexity", "perplexity", "per target token", "loss"

    def of(self, likelihood: TextScore) -> float:
        """exp(−log p / tokens)."""
        return _exp(-likelihood.log_probability / likelihood.tokens)

    def signature(self, references: int) -> str:
        """The unit."""
        return "per token"

    def mean(self, scores: Sequence[Score], means: Mapping[str, float]) -> Score | None:
        """The perplexity of the mean loss."""
        return Score(self.name, _exp(means["loss"]), self.signature(0)) if "loss" in means else None


class WordPerplexity(_LogProbabilityMetric):
    """Perplexity per blank-separated word; compares models with different vocabularies."""

    key, name, unit, restates = "word_perplexity", "word perplexity", "per word", "loss"

    def of(self, likelihood: TextScore) -> float:
        """exp(−log p / words)."""
        return _exp(-likelihood.log_probability / likelihood.words)

    def signature(self, references: int) -> str:
        """The unit."""
        return "per word"

    def mean(self, scores: Sequence[Score], means: Mapping[str, float]) -> Score | None:
        """None: the sets have different numbers of words per token."""
        return None


class BytePerplexity(_LogProbabilityMetric):
    """Perplexity per byte of UTF-8; compares models in any language, and its log₂ is bits per byte."""

    key, name, digits, unit, restates = "byte_perplexity", "byte perplexity", 4, "per byte", "loss"

    def of(self, likelihood: TextScore) -> float:
        """exp(−log p / bytes)."""
        return _exp(-likelihood.log_probability / likelihood.bytes)

    def signature(self, references: int) -> str:
        """The unit."""
        return "per byte"

    def mean(self, scores: Sequence[Score], means: Mapping[str, float]) -> Score | None:
        """None: the sets have different numbers of bytes per token."""
        return None


def _exp(value: float) -> float:
    return exp(min(value, _LARGEST))
