"""`Report`: the scores of predictions with bootstrap intervals and a baseline, and comparisons of two reports."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import DataError
from dragoman.base.notebook import Card, Note, Shown
from dragoman.base.table import Table
from dragoman.metrics.labels.classification import ClassScores, ConfusionMatrix
from dragoman.metrics.resampling import Comparison, compare_resampled, interval_of, resampled_counts
from dragoman.metrics.score import Direction, Interval, Score, signatures

Floats = NDArray[np.float64]
Scorer = Callable[[Floats], dict[str, Floats]]
"""Computes the metrics (S,), by key, of S resampled test sets from the counts (S, N) of the examples. An undefined
value is NaN."""

LARGEST_UNDEFINED = 0.05
"""Maximum fraction of resampled test sets with an undefined value for which an interval is reported."""


@dataclass(frozen=True)
class LabelMetric:
    """A metric of predicted labels. The fields are those of its scores; see `Score`."""

    key: str
    name: str
    signature: str
    better: Direction = "higher"
    digits: int = 2

    def score_of(self, value: float, resampled: Floats | None, reason: str | None) -> Score:
        """Return the score. value: NaN if it is undefined for the reason. resampled: the values (samples,)."""
        if np.isnan(value):
            return Score(**vars(self), value=value, reason=reason)
        return Score(**vars(self), value=float(value), interval=_interval(resampled))


@dataclass(frozen=True)
class Baseline:
    """The values of a simple prediction. description: the prediction. values: by key; None if undefined."""

    description: str
    values: Mapping[str, float | None]


@dataclass(frozen=True)
class Report(Shown):
    """The scores of a model's predictions on a test set.

    task: classification, regression, tagging, question answering or parsing. examples: number of examples, which are
    also the units of resampling; `unit` is their name. warnings: texts by key; one_class means that all predictions are
    equal. classes: scores of each class or span type. resampled: values (samples,) on the resampled test sets, by key.
    gold_digest: digest of the correct labels, to ensure that compared reports belong to the same test set.
    """

    task: str
    examples: int
    unit: str
    scores: tuple[Score, ...]
    samples: int
    seed: int
    baseline: Baseline | None = None
    classes: tuple[ClassScores, ...] = ()
    confusion: ConfusionMatrix | None = None
    warnings: Mapping[str, str] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    resampled: Mapping[str, Floats] = field(default_factory=dict, repr=False, compare=False)
    gold_digest: str = field(default="", repr=False)

    def __getitem__(self, key: str) -> Score:
        """Return the score with this key. Raises KeyError if the report does not contain it."""
        for score in self.scores:
            if score.key == key:
                return score
        raise KeyError(key)

    def text(self) -> str:
        """Return the report as text of several lines, without a final newline."""
        return "\n\n".join(
            [self._heading(), *(each if isinstance(each, str) else each.text() for each in self._parts())]
        )

    def card(self) -> Card:
        """Return the parts of the text."""
        return Card(self._heading(), list(self._parts()))

    def _parts(self) -> Iterator[str | Table]:
        yield Table(list(self._rows()), right=1)
        if described := signatures(self.scores):
            yield Note("\n".join(described))
        yield from (f"{score.name} is undefined: {score.reason}." for score in self.scores if score.reason)
        if self.thresholds:
            yield "\n".join(f"threshold of {key}: {threshold:.6g}" for key, threshold in self.thresholds.items())
        if self.classes:
            yield Table(list(_class_rows(self.classes)), right=1)
        if self.confusion is not None:
            yield self.confusion.table()
        yield from (f"warning: {warning}" for warning in self.warnings.values())

    def as_json(self) -> dict[str, Any]:
        """Return all values except the resampled ones as JSON types."""
        report: dict[str, Any] = {
            "task": self.task,
            self.unit: self.examples,
            "bootstrap": {"samples": self.samples, "seed": self.seed, "level": 0.95},
            "scores": {score.key: score.as_json() for score in self.scores},
        }
        if self.baseline is not None:
            report["baseline"] = {"description": self.baseline.description, "values": dict(self.baseline.values)}
        if self.thresholds:
            report["thresholds"] = dict(self.thresholds)
        if self.classes:
            report["classes"] = [vars(scores) for scores in self.classes]
        if self.confusion is not None:
            report["confusion"] = {"labels": list(self.confusion.labels), "counts": self.confusion.counts.tolist()}
        return {**report, "warnings": dict(self.warnings)}

    def _heading(self) -> str:
        heading = f"{self.task}, {self.examples:,} {self.unit}"
        if self.samples:
            heading += f"; 95% intervals of {self.samples:,} bootstrap samples (seed {self.seed})"
        return heading if self.baseline is None else f"{heading}; baseline: {self.baseline.description}"

    def _rows(self) -> Iterable[list[str]]:
        columns = ["metric", "value"]
        columns += ["95% interval"] if self.samples else []
        columns += ["baseline"] if self.baseline else []
        yield columns
        for score in self.scores:
            row = [score.name, _format(score.value if score.is_defined else None, score.digits)]
            if self.samples:
                row.append(_format_interval(score.interval, score.digits))
            if self.baseline:
                row.append(_format(self.baseline.values.get(score.key), score.digits))
            yield row


def compare(first: Report, second: Report) -> list[Comparison]:
    """Compare two systems by paired bootstrap resampling of the test set that both reports belong to.

    Metrics that are undefined for one of the systems, or on more than 5% of the resampled test sets, are omitted.
    Raises DataError if the correct labels, the numbers of samples, or the seeds differ, or if there are no samples.
    """
    if first.gold_digest != second.gold_digest:
        raise DataError("the two reports belong to different correct labels: score both systems on the same examples")
    if (first.samples, first.seed) != (second.samples, second.seed) or not first.samples:
        raise DataError("a comparison needs two reports with the same number of samples, at least 1, and the same seed")
    comparisons = []
    for score in first.scores:
        other = next((each for each in second.scores if each.signature == score.signature), None)
        if other is None or not score.is_defined or not other.is_defined or score.key not in first.resampled:
            continue
        sides = first.resampled[score.key], second.resampled[other.key]
        defined = ~(np.isnan(sides[0]) | np.isnan(sides[1]))
        if defined.mean() < 1 - LARGEST_UNDEFINED:
            continue
        values = sides[0][defined], sides[1][defined]
        comparisons.append(compare_resampled(score, other, *values, samples=int(defined.sum()), seed=first.seed))
    return comparisons


def resample(scorer: Scorer, examples: int, samples: int, seed: int) -> dict[str, Floats]:
    """Return the values (samples,) of all metrics of a scorer, by key; empty without samples."""
    blocks = [scorer(counts) for counts in resampled_counts(examples, samples, seed)] if samples else []
    return {key: np.concatenate([block[key] for block in blocks]) for key in blocks[0]} if blocks else {}


def score_all(
    metrics: Iterable[LabelMetric],
    values: Mapping[str, float],
    resampled: Mapping[str, Floats],
    reasons: Mapping[str, str] | None = None,
) -> tuple[Score, ...]:
    """Return the scores in the order of `metrics`.

    values: by key; NaN if undefined. reasons: why a value is undefined, by key.
    """
    reasons = reasons or {}
    return tuple(each.score_of(values[each.key], resampled.get(each.key), reasons.get(each.key)) for each in metrics)


def _interval(values: Floats | None) -> Interval | None:
    if values is None or np.isnan(values).mean() > LARGEST_UNDEFINED:
        return None
    return interval_of(values[~np.isnan(values)])


def _class_rows(classes: Iterable[ClassScores]) -> Iterable[list[str]]:
    yield ["class", "precision", "recall", "F1", "support", "predicted"]
    for scores in classes:
        values = [f"{value:.2f}" for value in (scores.precision, scores.recall, scores.f1)]
        yield [scores.name or "(no type)", *values, f"{scores.support:,}", f"{scores.predicted:,}"]


def _format_interval(interval: Interval | None, digits: int) -> str:
    return "–" if interval is None else f"[{interval.low:.{digits}f}, {interval.high:.{digits}f}]"


def _format(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
