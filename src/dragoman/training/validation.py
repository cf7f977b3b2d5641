"""`Validation`: the metrics of a model on held-out data, for every task."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from dragoman.metrics.metric import Metric, Outputs, Score


@dataclass(frozen=True)
class Measure:
    """The value of a metric. key: the metric's name in settings and logs; name: its name for display.

    better: whether higher or lower values are better; None for a value that is computed from another measure and
    therefore does not affect comparisons. signature: describes the computation if there are several variants. digits:
    number of decimal places for display.
    """

    key: str
    name: str
    value: float
    better: Literal["higher", "lower"] | None
    signature: str = ""
    digits: int = 2

    @staticmethod
    def from_score(metric: Metric, score: Score) -> "Measure":
        """Create a measure from a metric's score."""
        better = metric.better if metric.restates is None else None
        return Measure(metric.key, metric.name, score.value, better, score.signature, metric.digits)

    @property
    def merit(self) -> float:
        """The value, negated if lower is better."""
        return -self.value if self.better == "lower" else self.value

    def __str__(self) -> str:
        return f"{self.name} {self.value:.{self.digits}f}"

    def full(self) -> str:
        """Format the value with its signature, which is needed to compare it with other values."""
        return f"{self.name} = {self.value:.{self.digits}f}" + (f" ({self.signature})" if self.signature else "")


@dataclass(frozen=True)
class Validation:
    """The result of a validation. measures: in display order; seconds: the duration.

    sets: the result of each validation set if there are several. In this case, `measures` are the means over the sets,
    and `seconds` is the sum.
    """

    measures: tuple[Measure, ...]
    seconds: float
    sets: Mapping[str, "Validation"] = field(default_factory=dict)

    def __getitem__(self, key: str) -> Measure:
        """Return the measure with this key. Raises KeyError if there is none."""
        for measure in self.measures:
            if measure.key == key:
                return measure
        raise KeyError(key)

    def score(self, metric: str) -> tuple[float, ...]:
        """Return the sort key of the validation: `metric` first, then the other measures. Higher is better."""
        return tuple(measure.merit for measure in self.deciding(metric))

    def deciding(self, metric: str) -> list[Measure]:
        """Return the measures that decide between validations: `metric`, and then those that break ties, in order."""
        measures = [measure for measure in reversed(self.measures) if measure.better is not None]
        return sorted(measures, key=lambda measure: measure.key != metric)

    def log_line(self) -> dict[str, Any]:
        """Return the fields of the validation in the run's log."""
        line: dict[str, Any] = {}
        for measure in self.measures:
            line[f"valid_{measure.key}"] = measure.value
            if measure.better is not None and measure.signature:
                line[f"valid_{measure.key}_signature"] = measure.signature
        if self.sets:
            line["valid_sets"] = {
                name: {measure.key: measure.value for measure in validation.measures}
                for name, validation in self.sets.items()
            }
        return line

    def __str__(self) -> str:
        return " · ".join(map(str, self.measures))

    def brief(self) -> str:
        """Format the measures, except those that are computed from other measures."""
        return " · ".join(str(measure) for measure in self.measures if measure.better is not None)


def validate(metrics: Sequence[Metric], outputs: Outputs, started: float) -> Validation:
    """Compute metrics. started: the time at which the validation started, by `time.monotonic`."""
    measures = tuple(
        Measure.from_score(
            metric,
            metric.score(
                outputs.hypotheses, *outputs.references, sources=outputs.sources, likelihood=outputs.likelihood
            ),
        )
        for metric in metrics
    )
    return Validation(measures, time.monotonic() - started)


def average_validations(metrics: Sequence[Metric], sets: Mapping[str, Validation]) -> Validation:
    """Return the unweighted means over several sets, with the results of each set. Seconds are summed."""
    measures: list[Measure] = []
    for metric in metrics:
        of_sets = [validation[metric.key] for validation in sets.values()]
        scores = [Score(metric.name, measure.value, measure.signature) for measure in of_sets]
        mean = metric.mean(scores, {measure.key: measure.value for measure in measures})
        if mean is not None:
            measures.append(Measure.from_score(metric, mean))
    return Validation(tuple(measures), sum(validation.seconds for validation in sets.values()), dict(sets))
