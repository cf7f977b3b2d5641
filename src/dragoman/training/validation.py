"""`Validation`: the scores of a model on held-out data, for every task."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dragoman.metrics.metric import Metric, Outputs
from dragoman.metrics.score import Score


@dataclass(frozen=True)
class Validation:
    """The result of a validation. scores: in display order; seconds: the duration.

    sets: the result of each validation set if there are several. In this case, `scores` are the means over the sets,
    and `seconds` is the sum. outputs: what the scores of a single set were computed from, if it is kept.
    """

    scores: tuple[Score, ...]
    seconds: float
    sets: Mapping[str, "Validation"] = field(default_factory=dict)
    outputs: Outputs | None = field(default=None, repr=False, compare=False)

    def __getitem__(self, key: str) -> Score:
        """Return the score with this key. Raises KeyError for an unknown key."""
        for score in self.scores:
            if score.key == key:
                return score
        raise KeyError(key)

    def rank(self, metric: str) -> tuple[float, ...]:
        """Return the sort key of the validation: `metric` first, then the other scores. Higher is better."""
        return tuple(score.merit for score in self.deciding(metric))

    def deciding(self, metric: str) -> list[Score]:
        """Return the scores that decide between validations: `metric`, and then those that break ties, in order."""
        scores = [score for score in reversed(self.scores) if score.better is not None]
        return sorted(scores, key=lambda score: score.key != metric)

    def log_line(self) -> dict[str, Any]:
        """Return the fields of the validation in the run's log."""
        line: dict[str, Any] = {}
        for score in self.scores:
            line[f"valid_{score.key}"] = score.value
            if score.better is not None and score.signature:
                line[f"valid_{score.key}_signature"] = score.signature
        if self.sets:
            line["valid_sets"] = {
                name: {score.key: score.value for score in validation.scores} for name, validation in self.sets.items()
            }
        return line

    def __str__(self) -> str:
        return " · ".join(score.brief() for score in self.scores)

    def brief(self) -> str:
        """Format the scores, except those that are computed from other scores."""
        return " · ".join(score.brief() for score in self.scores if score.better is not None)


def validate(metrics: Sequence[Metric], outputs: Outputs, started: float) -> Validation:
    """Compute metrics. started: the time at which the validation started, by `time.monotonic`."""
    scores = tuple(
        metric.score(outputs.hypotheses, *outputs.references, sources=outputs.sources, likelihood=outputs.likelihood)
        for metric in metrics
    )
    return Validation(scores, time.monotonic() - started, outputs=outputs)


def average_validations(metrics: Sequence[Metric], sets: Mapping[str, Validation]) -> Validation:
    """Return the unweighted means over several sets, with the results of each set. Seconds are summed."""
    means: list[Score] = []
    for metric in metrics:
        scores = [validation[metric.key] for validation in sets.values()]
        mean = metric.mean(scores, {score.key: score.value for score in means})
        if mean is not None:
            means.append(mean)
    return Validation(tuple(means), sum(validation.seconds for validation in sets.values()), dict(sets))


def defined_scores(scores: Iterable[Score]) -> Iterator[Score]:
    """Yield scores with 0 for an undefined value, such as the correlation of equal predictions."""
    for score in scores:
        yield score if score.is_defined else replace(score, value=0.0, reason=None)
