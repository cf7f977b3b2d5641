"""`Score`: the value of a metric, with what is needed to display it and to compare it with other values."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from math import isnan
from typing import Any, Literal

Direction = Literal["higher", "lower"]
"""Whether higher or lower values of a metric are better."""


@dataclass(frozen=True)
class Interval:
    """The mean score on the resampled test sets, and the range of the middle 95% of the scores."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Score:
    """The value of a metric on a test set. Only scores with the same signature are comparable.

    name: the metric's name for display. value: NaN if the metric is undefined for the `reason`. signature: describes
    the computation; empty if there is only one variant. key: the metric's name in settings, logs and JSON. better:
    whether higher or lower values are better; None for a value that is computed from another score and therefore does
    not affect comparisons. digits: number of decimal places for display. interval: the middle 95% of the values on
    resampled test sets; None without resampling, or if the value is undefined on more than 5% of them.
    """

    name: str
    value: float
    signature: str = ""
    key: str = ""
    better: Direction | None = None
    digits: int = 2
    interval: Interval | None = None
    reason: str | None = None

    @property
    def is_defined(self) -> bool:
        """Whether the metric has a value for this test set."""
        return not isnan(self.value)

    @property
    def merit(self) -> float:
        """The value, negated if lower is better."""
        return -self.value if self.better == "lower" else self.value

    def brief(self) -> str:
        """Format the name and the value, as in the messages of a training."""
        return f"{self.name} {self.value:.{self.digits}f}"

    def __str__(self) -> str:
        notes = [self.signature] if self.signature else []
        if self.interval is not None:
            low, high = (f"{value:.{self.digits}f}" for value in (self.interval.low, self.interval.high))
            notes.insert(0, f"95% of resampled test sets: {low} to {high}")
        return f"{self.name} = {self.value:.{self.digits}f}" + (f" ({'; '.join(notes)})" if notes else "")

    def as_json(self) -> dict[str, Any]:
        """Return the score as JSON types. An undefined value is null."""
        return {
            "name": self.name,
            "value": self.value if self.is_defined else None,
            **({} if self.interval is None else {"interval": asdict(self.interval)}),
            **({} if self.reason is None else {"reason": self.reason}),
            "signature": self.signature,
            "better": self.better,
        }


def signatures(scores: Iterable[Score]) -> list[str]:
    """Return a line with the name and the signature of each score whose signature says more than its name."""
    return [f"{each.name}: {each.signature}" for each in scores if each.signature not in ("", each.name)]
