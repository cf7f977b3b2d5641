"""`Report`: the measures of predictions with bootstrap intervals and a baseline, and comparisons of two reports."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import DataError
from dragoman.metrics.bootstrap import Comparison, Interval, compare_resampled, interval_of, resampled_counts
from dragoman.metrics.labels.classification import ClassScores, ConfusionMatrix, align
from dragoman.metrics.metric import Score

Floats = NDArray[np.float64]
Scorer = Callable[[Floats], dict[str, Floats]]
"""Computes the measures (S,), by key, of S resampled test sets from the counts (S, N) of the examples. An undefined
value is NaN."""

_LARGEST_UNDEFINED = 0.05
"""Maximum fraction of resampled test sets with an undefined value for which an interval is reported."""


@dataclass(frozen=True)
class MeasureKind:
    """The properties of a measure. signature: describes its computation; only equal signatures are comparable.

    better: whether higher or lower values are better. unit: percent, or empty.
    """

    key: str
    name: str
    signature: str
    better: Literal["higher", "lower"] = "higher"
    unit: Literal["percent", ""] = "percent"


@dataclass(frozen=True)
class Measure(MeasureKind):
    """The value of a measure on a test set.

    value: None if the measure is undefined for the `reason`. interval: the middle 95% of the values on resampled test
    sets; None if there are no resampled test sets, or if the value is undefined on more than 5% of them.
    """

    value: float | None = None
    interval: Interval | None = None
    reason: str | None = None

    @property
    def digits(self) -> int:
        """Number of decimal places in tables."""
        return 2 if self.unit == "percent" else 4

    @property
    def score(self) -> Score | None:
        """The value with its name and signature; None if it is undefined."""
        return None if self.value is None else Score(self.name, self.value, self.signature)

    def as_json(self) -> dict[str, Any]:
        """Return the value as JSON types."""
        entry: dict[str, Any] = {"name": self.name, "value": self.value}
        if self.interval is not None:
            entry["interval"] = [self.interval.low, self.interval.high]
        if self.reason is not None:
            entry["reason"] = self.reason
        return {**entry, "signature": self.signature, "better": self.better, "unit": self.unit}


@dataclass(frozen=True)
class Baseline:
    """The values of a simple prediction. description: the prediction. values: by key; None if undefined."""

    description: str
    values: Mapping[str, float | None]


@dataclass(frozen=True)
class Report:
    """The measures of a model's predictions on a test set.

    task: classification, regression, tagging, question answering or parsing. examples: number of examples, which are
    also the units of resampling; `unit` is their name. warnings: texts by key; one_class means that all predictions are
    equal. classes: scores of each class or span type. resampled: values (samples,) on the resampled test sets, by key.
    gold_digest: digest of the correct labels, to ensure that compared reports belong to the same test set.
    """

    task: str
    examples: int
    unit: str
    measures: tuple[Measure, ...]
    samples: int
    seed: int
    baseline: Baseline | None = None
    classes: tuple[ClassScores, ...] = ()
    confusion: ConfusionMatrix | None = None
    warnings: Mapping[str, str] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    resampled: Mapping[str, Floats] = field(default_factory=dict, repr=False, compare=False)
    gold_digest: str = field(default="", repr=False)

    def __getitem__(self, key: str) -> Measure:
        """Return the measure with this key. Raises KeyError if the report does not contain it."""
        for measure in self.measures:
            if measure.key == key:
                return measure
        raise KeyError(key)

    def text(self) -> str:
        """Return the report as text of several lines, without a final newline."""
        parts = [self._heading(), "\n".join(align(self._rows()))]
        parts += [f"{measure.name} is undefined: {measure.reason}." for measure in self.measures if measure.reason]
        if self.thresholds:
            parts.append(
                "\n".join(f"threshold of {key}: {threshold:.6g}" for key, threshold in self.thresholds.items())
            )
        if self.classes:
            parts.append("\n".join(align(_class_rows(self.classes))))
        if self.confusion is not None:
            parts.append(self.confusion.text())
        parts += [f"warning: {warning}" for warning in self.warnings.values()]
        return "\n\n".join(parts)

    def as_json(self) -> dict[str, Any]:
        """Return all values except the resampled ones as JSON types."""
        report: dict[str, Any] = {
            "task": self.task,
            self.unit: self.examples,
            "bootstrap": {"samples": self.samples, "seed": self.seed, "level": 0.95},
            "measures": {measure.key: measure.as_json() for measure in self.measures},
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
        columns = ["measure", "value"]
        columns += ["95% interval"] if self.samples else []
        columns += ["baseline"] if self.baseline else []
        yield [*columns, "signature"]
        for measure in self.measures:
            row = [measure.name, _format(measure.value, measure.digits)]
            if self.samples:
                row.append(_format_interval(measure.interval, measure.digits))
            if self.baseline:
                row.append(_format(self.baseline.values.get(measure.key), measure.digits))
            yield [*row, measure.signature]


def compare(first: Report, second: Report) -> list[Comparison]:
    """Compare two systems by paired bootstrap resampling of the test set that both reports belong to.

    Measures that are undefined for one of the systems, or on more than 5% of the resampled test sets, are omitted.
    Raises DataError if the correct labels, the numbers of samples, or the seeds differ, or if there are no samples.
    """
    if first.gold_digest != second.gold_digest:
        raise DataError("the two reports belong to different correct labels: score both systems on the same examples")
    if (first.samples, first.seed) != (second.samples, second.seed) or not first.samples:
        raise DataError("a comparison needs two reports with the same number of samples, at least 1, and the same seed")
    comparisons = []
    for measure in first.measures:
        other = next((each for each in second.measures if each.signature == measure.signature), None)
        if other is None or measure.score is None or other.score is None or measure.key not in first.resampled:
            continue
        sides = first.resampled[measure.key], second.resampled[other.key]
        defined = ~(np.isnan(sides[0]) | np.isnan(sides[1]))
        if defined.mean() < 1 - _LARGEST_UNDEFINED:
            continue
        values = sides[0][defined], sides[1][defined]
        comparisons.append(compare_resampled(measure.score, other.score, *values, int(defined.sum()), first.seed))
    return comparisons


def resample(scorer: Scorer, examples: int, samples: int, seed: int) -> dict[str, Floats]:
    """Return the values (samples,) of all measures of a scorer, by key; empty without samples."""
    blocks = [scorer(counts) for counts in resampled_counts(examples, samples, seed)] if samples else []
    return {key: np.concatenate([block[key] for block in blocks]) for key in blocks[0]} if blocks else {}


def measure_all(
    kinds: Iterable[MeasureKind],
    values: Mapping[str, float],
    resampled: Mapping[str, Floats],
    reasons: Mapping[str, str] | None = None,
) -> tuple[Measure, ...]:
    """Return the measures in the order of `kinds`.

    values: by key; NaN if undefined. reasons: why a value is undefined, by key.
    """
    return tuple(
        Measure(
            **vars(kind),
            value=None if np.isnan(values[kind.key]) else float(values[kind.key]),
            interval=None if np.isnan(values[kind.key]) else _interval(resampled.get(kind.key)),
            reason=(reasons or {}).get(kind.key) if np.isnan(values[kind.key]) else None,
        )
        for kind in kinds
    )


def _interval(values: Floats | None) -> Interval | None:
    if values is None or np.isnan(values).mean() > _LARGEST_UNDEFINED:
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
