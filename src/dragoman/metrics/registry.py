"""The metric registry, by the keys used in settings, on the command line and in Python."""

from collections.abc import Callable, Mapping, Set
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import SerializeAsAny, WrapValidator

from dragoman.base.errors import ConfigError
from dragoman.metrics.bleu import BLEU, LowercaseBLEU
from dragoman.metrics.chrf import ChrF, ChrFPlusPlus
from dragoman.metrics.generated_labels import Accuracy, AnswerF1, ExactMatch, OtherOutputs
from dragoman.metrics.lecture_bleu import LectureBLEU
from dragoman.metrics.metric import Metric, Need
from dragoman.metrics.perplexity import BytePerplexity, Loss, Perplexity, WordPerplexity
from dragoman.metrics.rouge import Rouge1, Rouge2, RougeL, StemmedRouge1, StemmedRouge2, StemmedRougeL
from dragoman.metrics.summed import NgramMetric, SummedMetric
from dragoman.metrics.ter import TER

M = TypeVar("M", bound="Metric | type[Metric]")

METRICS: dict[str, Metric] = {
    metric.key: metric
    for metric in (
        BLEU(),
        LowercaseBLEU(),
        ChrF(),
        ChrFPlusPlus(),
        TER(),
        LectureBLEU(),
        Loss(),
        Perplexity(),
        WordPerplexity(),
        BytePerplexity(),
        Rouge1(),
        Rouge2(),
        RougeL(),
        StemmedRouge1(),
        StemmedRouge2(),
        StemmedRougeL(),
        Accuracy(),
        OtherOutputs(),
        ExactMatch(),
        AnswerF1(),
    )
}
"""All metrics by key."""


def register(metric: M) -> M:
    """Add a metric to the registry, and return it. A class may be passed as well, so that this is a decorator.

    Registering the same class again replaces its metric. Raises TypeError for anything but a metric, and ValueError if
    the key belongs to another metric.
    """
    added = metric() if isinstance(metric, type) else metric
    if not isinstance(added, Metric):
        raise TypeError(f"a metric is a subclass of Metric, which {metric!r} is not")
    known = METRICS.get(added.key)
    if known is not None and _definition(known) != _definition(added):
        raise ValueError(f"there is already a metric called {added.key!r}: choose another key")
    METRICS[added.key] = added
    return metric


def _definition(metric: Metric) -> tuple[str, str]:
    return type(metric).__module__, type(metric).__qualname__


_GROUPS: Mapping[str, tuple[str, ...]] = {
    "accuracy": ("other_outputs", "accuracy"),
    "other_outputs": ("accuracy", "other_outputs"),
    "exact_match": ("answer_f1", "exact_match"),
    "answer_f1": ("exact_match", "answer_f1"),
    "rouge1": ("rouge1", "rouge2", "rougeL"),
    "rouge2": ("rouge1", "rouge2", "rougeL"),
    "rougeL": ("rouge1", "rouge2", "rougeL"),
}
"""The metrics that are reported together."""


def metrics_with(metric: str) -> tuple[str, ...]:
    """Return the keys of the metrics that are reported together with a metric, which are computed from outputs."""
    return _GROUPS.get(metric, () if metric == "loss" else (metric,))


_SYNONYMS = {"chrf2": "chrf", "chrf2++": "chrf++", "sacrebleu": "bleu", "bleu4": "bleu"}
"""Other names of metrics, as papers and other programs write them."""


_PIECE_BLEU = frozenset(("spbleu", "spm", "flores200", "flores101", "spbleu200", "spbleu-flores200"))
"""Names of BLEU on pieces of SentencePiece, which is not a metric of its own here, but a tokeniser of BLEU."""


def key_of(name: str) -> str:
    """Return the key of a metric's name in any spelling, such as `BLEU` and `chrF2++`; the name itself if unknown."""
    keys = {key.lower(): key for key in METRICS}
    return keys.get(_SYNONYMS.get(name.lower(), name.lower()), name)


def metric_of(key: str) -> Metric:
    """Return the metric with this key. For an unknown key, raises a ConfigError that lists all keys."""
    if key.lower() in _PIECE_BLEU:
        raise ConfigError(f"{key} is BLEU with the tokeniser of FLORES: use --metric bleu --tokenizer flores200")
    if key not in METRICS:
        raise ConfigError(f"unknown metric {key!r}: expected one of {', '.join(METRICS)}")
    return METRICS[key]


def computable_metrics(inputs: Set[Need]) -> dict[str, Metric]:
    """Return the metrics of translations, by key, that can be computed from these inputs."""
    return {key: metric for key, metric in METRICS.items() if metric.by_default and metric.needs <= inputs}


def summed_metric(key: str) -> SummedMetric:
    """Return a metric that supports bootstrap resampling. Raises ConfigError for any other key."""
    metric = METRICS.get(key)
    if not isinstance(metric, SummedMetric):
        supported = " or ".join(key for key, metric in METRICS.items() if isinstance(metric, SummedMetric))
        raise ConfigError(f"the metric {key!r} does not support bootstrap resampling: use {supported}")
    return metric


def ngram_metrics() -> dict[str, NgramMetric]:
    """Return the metrics, by key, that can score single sentences, as required by tuning, minimum Bayes risk decoding
    and rewards.
    """
    return {key: metric for key, metric in METRICS.items() if isinstance(metric, NgramMetric)}


def _or_registered(condition: Callable[[Metric], bool]) -> WrapValidator:
    """Return a validator that also accepts the keys of metrics that were registered after the type was defined."""

    def validate(value: Any, validate_built_in: Callable[[Any], Any]) -> Any:
        registered = METRICS.get(value) if isinstance(value, str) else None
        return value if registered is not None and condition(registered) else validate_built_in(value)

    return WrapValidator(validate)


def _scores_sentences(metric: Metric) -> bool:
    return isinstance(metric, NgramMetric)


def _selects_checkpoints(metric: Metric) -> bool:
    return metric.restates is None


if TYPE_CHECKING:
    SentenceMetricName = str
    ValidationMetricName = str
else:
    SentenceMetricName = Annotated[Literal[tuple(ngram_metrics())], _or_registered(_scores_sentences), SerializeAsAny()]
    """The type of a setting whose value is the key of a metric that scores single sentences."""
    ValidationMetricName = Annotated[
        Literal[tuple(key for key, metric in METRICS.items() if _selects_checkpoints(metric))],
        _or_registered(_selects_checkpoints),
        SerializeAsAny(),
    ]
    """The type of a setting whose value is the key of a metric that can select the best checkpoint."""
