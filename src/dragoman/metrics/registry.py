"""The registry of metrics, by the keys used in settings, on the command line and in Python."""

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
    """Return the metric with that key. Raises ConfigError, which lists all keys, for an unknown key."""
    if key not in METRICS:
        raise ConfigError(f"there is no metric {key!r}: choose one of {', '.join(METRICS)}")
    return METRICS[key]


def computable(given: Set[Need]) -> dict[str, Metric]:
    """Return the metrics, by key, that need no other inputs than these."""
    return {key: metric for key, metric in METRICS.items() if metric.needs <= given}


def summed_metric(key: str) -> SummedMetric:
    """Return a metric that supports bootstrap resampling. Raises ConfigError for any other key."""
    metric = METRICS.get(key)
    if not isinstance(metric, SummedMetric):
        known = " or ".join(key for key, metric in METRICS.items() if isinstance(metric, SummedMetric))
        raise ConfigError(f"the metric {key!r} does not support bootstrap resampling: use {known}")
    return metric


def ngram_metrics() -> dict[str, NgramMetric]:
    """Return the metrics, by key, that also score single sentences: for tuning, minimum Bayes risk and rewards."""
    return {key: metric for key, metric in METRICS.items() if isinstance(metric, NgramMetric)}


if TYPE_CHECKING:
    SentenceMetricName = str
    ValidationMetricName = str
else:
    SentenceMetricName = Literal[tuple(ngram_metrics())]
    """The key of a metric that scores single sentences, as the type of a setting."""
    ValidationMetricName = Literal[tuple(key for key, metric in METRICS.items() if metric.restates is None)]
    """The key of a metric that can decide which checkpoint is best, as the type of a setting."""
