"""Loss and perplexity: metrics computed from the log-probability of held-out text under a model."""

from collections.abc import Mapping, Sequence
from math import exp
from typing import ClassVar

from dragoman.metrics.metric import Metric, Need, Outputs
from dragoman.metrics.score import Score
from dragoman.metrics.text_score import TextScore

_MAX_EXPONENT = 700.0
"""The largest exponent (nats); e to this power is close to the largest float."""


class _LogProbabilityMetric(Metric):
    """A metric that is computed only from the summed log-probability and the numbers of tokens, words and bytes."""

    better = "lower"
    needs: ClassVar[frozenset[Need]] = frozenset({"log-probabilities"})

    def value(self, outputs: Outputs) -> float:
        """Return the value for `outputs.likelihood`."""
        assert outputs.likelihood is not None
        return self.compute(outputs.likelihood)

    def compute(self, score: TextScore) -> float:
        """Return the value for a text's log-probability."""
        raise NotImplementedError


class Loss(_LogProbabilityMetric):
    """Cross-entropy without label smoothing, in nats per token."""

    key, name, digits, unit = "loss", "loss", 4, "nats per token"

    def compute(self, score: TextScore) -> float:
        """Return −log p / tokens."""
        return -score.log_probability / score.tokens


class Perplexity(_LogProbabilityMetric):
    """Perplexity per token: exp(loss).

    At perplexity N, the model is as uncertain as a choice among N equally likely tokens.
    """

    key, name, unit, restates = "perplexity", "perplexity", "per target token", "loss"

    def compute(self, score: TextScore) -> float:
        """Return exp(−log p / tokens)."""
        return _exp(-score.log_probability / score.tokens)

    def signature(self, references: int) -> str:
        """Return the unit."""
        return "per token"

    def mean(self, scores: Sequence[Score], means: Mapping[str, float]) -> Score | None:
        """Return the perplexity of the mean loss."""
        return self.score_of(_exp(means["loss"]), self.signature(0)) if "loss" in means else None


class WordPerplexity(_LogProbabilityMetric):
    """Perplexity per word, or per character of a script without spaces, for comparing different vocabularies."""

    key, name, unit, restates = "word_perplexity", "word perplexity", "per word", "loss"

    def compute(self, score: TextScore) -> float:
        """Return exp(−log p / words)."""
        return _exp(-score.log_probability / score.words)

    def signature(self, references: int) -> str:
        """Return the unit."""
        return "per word"

    def mean(self, scores: Sequence[Score], means: Mapping[str, float]) -> Score | None:
        """Return None, because the sets have different numbers of words per token."""
        return None


class BytePerplexity(_LogProbabilityMetric):
    """Perplexity per UTF-8 byte, for comparing models in any language. Its log₂ is the number of bits per byte."""

    key, name, digits, unit, restates = "byte_perplexity", "byte perplexity", 4, "per byte", "loss"

    def compute(self, score: TextScore) -> float:
        """Return exp(−log p / bytes)."""
        return _exp(-score.log_probability / score.bytes)

    def signature(self, references: int) -> str:
        """Return the unit."""
        return "per byte"

    def mean(self, scores: Sequence[Score], means: Mapping[str, float]) -> Score | None:
        """Return None, because the sets have different numbers of bytes per token."""
        return None


def _exp(value: float) -> float:
    return exp(min(value, _MAX_EXPONENT))
