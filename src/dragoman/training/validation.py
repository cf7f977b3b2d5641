"""`Validation`: the metrics of a model on held-out data, for every task."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from dragoman.metrics.metric import Metric, Outputs, Score


@dataclass(frozen=True)
class Measure:
    """The value of a metric. key: its name in settings and logs; name: for display.

    better: whether higher or lower values are better; None for a value that restates another one and decides nothing.
    signature: how the value was computed, if there are several ways. digits: decimal places for display.
    """

    key: str
    name: str
    value: float
    better: Literal["higher", "lower"] | None
    signature: str = ""
    digits: int = 2

    @staticmethod
    def of(metric: Metric, score: Score) -> "Measure":
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
        """Return the value with the signature that makes it comparable."""
        return f"{self.name} = {self.value:.{self.digits}f}" + (f" ({self.signature})" if self.signature else "")


@dataclass(frozen=True)
class Validation:
    """The result of a validation. measures: in the order of display; seconds: its duration.

    sets: the results of each set if there are several; measures are then their means, and seconds their sum.
    """

    measures: tuple[Measure, ...]
    seconds: float
    sets: Mapping[str, "Validation"] = field(default_factory=dict)

    def __getitem__(self, key: str) -> Measure:
        """Return the measure with that key. Raises KeyError if there is none."""
        for measure in self.measures:
            if measure.key == key:
                return measure
        raise KeyError(key)

    def score(self, metric: str) -> tuple[float, ...]:
        """Return the sort key of the validation, higher is better: `metric` first, then the other measures."""
        deciding = [measure for measure in reversed(self.measures) if measure.better is not None]
        deciding.sort(key=lambda measure: measure.key != metric)
        return tuple(measure.merit for measure in deciding)

    def log_line(self) -> dict[str, Any]:
        """Return the validation as a line of the run's log."""
        line: dict[str, Any] = {}
        for measure in self.measures:
            line[f"valid_{measure.key}"] = measure.value
            if measure.better is not None and measure.signature:
                line[f"valid_{measure.key}_signature"] = measure.signature
        if self.sets:
            line["valid_sets"] = {
                name: {measure.key: measure.value for measure in one.measures} for name, one in self.sets.items()
            }
        return line

    def __str__(self) -> str:
        return " · ".join(map(str, self.measures))

    def brief(self) -> str:
        """Format the measures, without those that restate others."""
        return " · ".join(str(measure) for measure in self.measures if measure.better is not None)


def validate(metrics: Sequence[Metric], outputs: Outputs, started: float) -> Validation:
    """Compute metrics; started: the start of the validation by `time.monotonic`."""
    measures = tuple(
        Measure.of(
            metric,
            metric.score(
                outputs.hypotheses, *outputs.references, sources=outputs.sources, likelihood=outputs.likelihood
            ),
        )
        for metric in metrics
    )
    return Validation(measures, time.monotonic() - started)


def mean_of(metrics: Sequence[Metric], sets: Mapping[str, Validation]) -> Validation:
    """Return the unweighted means over several sets; seconds are summed. The result includes the sets."""
    measures: list[Measure] = []
    for metric in metrics:
        scores = [Score(metric.name, one[metric.key].value, one[metric.key].signature) for one in sets.values()]
        mean = metric.mean(scores, {measure.key: measure.value for measure in measures})
        if mean is not None:
            measures.append(Measure.of(metric, mean))
    return Validation(tuple(measures), sum(one.seconds for one in sets.values()), dict(sets))
