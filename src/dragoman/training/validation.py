"""`Validation`: what judging a model on held-out data has found, whatever the task measures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Measure:
    """One figure. key: its name in settings and logs; name: its name for people.

    better: which of two values is the better one; None for a figure that decides nothing, because another one says the
    same. signature: how it was measured, where there is a choice. digits: after the point, for people.
    """

    key: str
    name: str
    value: float
    better: Literal["higher", "lower"] | None
    signature: str = ""
    digits: int = 2

    @property
    def merit(self) -> float:
        """The value, negated where lower is better."""
        return -self.value if self.better == "lower" else self.value

    def __str__(self) -> str:
        return f"{self.name} {self.value:.{self.digits}f}"

    def full(self) -> str:
        """With the signature that makes it comparable."""
        return f"{self.name} = {self.value:.{self.digits}f}" + (f" ({self.signature})" if self.signature else "")


@dataclass(frozen=True)
class Validation:
    """measures: in the order in which people read them; seconds: what it took.

    sets: where there are several validation sets, what each has reached; the rest are their means, or sums of seconds.
    """

    measures: tuple[Measure, ...]
    seconds: float
    sets: Mapping[str, "Validation"] = field(default_factory=dict)

    def __getitem__(self, key: str) -> Measure:
        """The measure of that key. Raises KeyError."""
        for measure in self.measures:
            if measure.key == key:
                return measure
        raise KeyError(key)

    def score(self, metric: str) -> tuple[float, ...]:
        """What 'better' compares, higher is better: the measure `metric` first, among equals the others in turn."""
        deciding = [measure for measure in reversed(self.measures) if measure.better is not None]
        deciding.sort(key=lambda measure: measure.key != metric)
        return tuple(measure.merit for measure in deciding)

    def log_line(self) -> dict[str, Any]:
        """As the run's log has it."""
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
        """What decides, without what says the same."""
        return " · ".join(str(measure) for measure in self.measures if measure.better is not None)


def mean_of(sets: Mapping[str, Validation], means: Sequence[Measure]) -> Validation:
    """Several sets' validations as one: `means`, which the task has taken, with the sets beside them."""
    return Validation(tuple(means), sum(one.seconds for one in sets.values()), dict(sets))
