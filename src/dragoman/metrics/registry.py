"""The metrics that settings, the command line and Python functions know by their keys."""

from collections.abc import Set
from typing import TYPE_CHECKING, Literal

from dragoman.base.errors import ConfigError
from dragoman.metrics.bleu import BLEU
from dragoman.metrics.chrf import ChrF
from dragoman.metrics.lecture_bleu import LectureBLEU
from dragoman.metrics.metric import Metric, Need
from dragoman.metrics.perplexity import BytePerplexity, Loss, Perplexity, WordPerplexity
from dragoman.metrics.summed import NgramMetric, SummedMetric
from dragoman.metrics.ter import TER

METRICS: dict[str, Metric] = {
    metric.key: metric
    for metric in (
        BLEU(),
        ChrF(),
        TER(),
        LectureBLEU(),
        Loss(),
        Perplexity(),
        WordPerplexity(),
        BytePerplexity(),
    )
}
"""Every metric, by its key."""


def metric_of(key: str) -> Metric:
    """Raises ConfigError, listing the keys, for one that is unknown."""
    if key not in METRICS:
        raise ConfigError(f"there is no metric {key!r}: choose among {', '.join(METRICS)}")
    return METRICS[key]


def computable(given: Set[Need]) -> dict[str, Metric]:
    """Those that need nothing but these inputs."""
    return {key: metric for key, metric in METRICS.items() if metric.needs <= given}


def summed_metric(key: str) -> SummedMetric:
    """One for paired bootstrap resampling. Raises ConfigError for any other key."""
    metric = METRICS.get(key)
    if not isinstance(metric, SummedMetric):
        known = " or ".join(key for key, metric in METRICS.items() if isinstance(metric, SummedMetric))
        raise ConfigError(f"no bootstrap resampling by {key!r}: use {known}")
    return metric


def ngram_metrics() -> dict[str, NgramMetric]:
    """Those that also score single sentences: for tuning, minimum-risk choice and rewards."""
    return {key: metric for key, metric in METRICS.items() if isinstance(metric, NgramMetric)}


if TYPE_CHECKING:
    SentenceMetricName = str
    ValidationMetricName = str
else:
    SentenceMetricName = Literal[tuple(ngram_metrics())]
    """The key of a metric that scores single sentences, as the type of a setting."""
    ValidationMetricName = Literal[tuple(key for key, metric in METRICS.items() if metric.restates is None)]
    """The key of a metric that can decide which checkpoint is best, as the type of a setting."""
