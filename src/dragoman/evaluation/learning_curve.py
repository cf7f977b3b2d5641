"""`LearningCurve`: the scores of a system that was trained on parts of its corpus, and what more pairs would give."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dragoman.base.notebook import Card, Shown
from dragoman.base.table import Table
from dragoman.checkpoint.verdict import ScoreRange
from dragoman.figures.curves import Curve, CurvePanel, Curves
from dragoman.metrics.resampling import FEWEST_EXAMPLES, Comparison

_LIMITS = (
    "Each size was trained once, and the intervals cover only the choice of the test sentences; more pairs help only "
    "if they resemble the present ones."
)


@dataclass(frozen=True)
class CurvePoint:
    """The scores of a system that was trained on a part of the pairs.

    fraction: of the pairs that are not held out. pairs: their number before cleaning.
    """

    fraction: float
    pairs: int
    scores: tuple[ScoreRange, ...]


@dataclass(frozen=True)
class LearningCurve(Shown):
    """The scores of a system by the number of training pairs.

    system: its name. points: the smallest corpus first; each has twice as many pairs as the previous one. gains: the
    comparison of each point with the previous one, by the last metric of the scores. sentences: size of the test set.
    """

    system: str
    points: tuple[CurvePoint, ...]
    gains: tuple[Comparison, ...]
    sentences: int

    @property
    def expected(self) -> tuple[float, float] | None:
        """A pessimistic and an optimistic estimate of the gain by doubling the pairs again; None without a gain so far.

        The optimistic one is the last gain, as if the score grew with the logarithm of the number of pairs (Koehn and
        Knowles 2017, figure 3). The pessimistic one continues the ratio of the last two gains if it is below 1.
        """
        *earlier, last = self.gains
        if self.sentences < FEWEST_EXAMPLES or last.difference <= 0 or last.p_value >= 0.05:
            return None
        previous = earlier[-1].difference if earlier else 0.0
        ratio = last.difference / previous if previous > last.difference else 1.0
        return last.difference * ratio, last.difference

    @property
    def sentence(self) -> str:
        """What doubling the corpus has given, and what it may give next."""
        last, before, now = self.gains[-1], *(point.pairs for point in self.points[-2:])
        if self.sentences < FEWEST_EXAMPLES:
            return f"{self.sentences} sentences are too few for a learning curve: use a test set of at least 100."
        interval = last.difference_interval
        gain = f"{last.difference:+z.1f} {last.first.name} (95% interval {interval.low:+z.1f} to {interval.high:+z.1f})"
        doubling = f"Doubling the pairs from {before:,} to {now:,} gave {gain}"
        if (expected := self.expected) is None:
            return f"{doubling}, which is no significant gain: more pairs of the same kind will hardly help. {_LIMITS}"
        low, high = (f"{value:+.1f}" for value in expected)
        reach = high if low == high else f"{low} to {high}"
        return f"{doubling}: expect about {reach} {last.first.name} from doubling them again. {_LIMITS}"

    def table(self) -> Table:
        """Return the table of scores."""
        header = ("pairs", "fraction", *(score.metric for score in self.points[0].scores))
        rows = ((f"{each.pairs:,}", f"{each.fraction:g}", *map(str, each.scores)) for each in self.points)
        return Table([header, *rows], right=0)

    def __str__(self) -> str:
        return "\n".join([self._question, self.table().text(), self.sentence])

    @property
    def _question(self) -> str:
        return f"What would more pairs give {self.system}?"

    def card(self) -> Card:
        """Return the table, the picture and the sentence."""
        return Card(self._question, [self.table(), self.figure().picture(), self.sentence])

    def as_json(self) -> dict[str, Any]:
        """Return all values as JSON types."""
        points = [
            {
                "fraction": each.fraction,
                "pairs": each.pairs,
                "scores": [score.model_dump(mode="json") for score in each.scores],
            }
            for each in self.points
        ]
        gains = [each.as_json() for each in self.gains]
        return {"system": self.system, "points": points, "gains": gains, "sentence": self.sentence}

    def figure(self) -> Curves:
        """Return the picture: one panel per metric, with the scores and a band of their intervals."""
        pairs = np.array([each.pairs for each in self.points], np.float64)
        panels = []
        for number, score in enumerate(self.points[0].scores):
            ranges = [each.scores[number] for each in self.points]
            value, low, high = np.array([(each.value, each.low, each.high) for each in ranges], np.float64).T
            curve = Curve(self.system, pairs, value, style="points", band=(low, high))
            panels.append(CurvePanel(score.metric, "points", (curve,)))
        return Curves(
            title=f"Scores by the number of training pairs: {self.system}",
            caption=f"Scores on {self.sentences:,} test sentences, with 95% bootstrap intervals. {self.sentence}",
            limits=_LIMITS,
            panels=tuple(panels),
            x_label="training pairs",
        )
