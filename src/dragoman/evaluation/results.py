"""`Evaluation`: the scores of systems and their comparisons, as text and as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from dragoman.base.marks import Mark
from dragoman.base.notebook import Card, Note, Part, Shown
from dragoman.base.table import Table
from dragoman.checkpoint.verdict import Verdict
from dragoman.evaluation.examples import ExampleLines
from dragoman.evaluation.learning_curve import LearningCurve
from dragoman.metrics.bleu import LengthScore
from dragoman.metrics.resampling import Comparison
from dragoman.metrics.score import Interval, Score, signatures


@dataclass(frozen=True)
class SystemScores(Shown):
    """The scores of one system.

    system: name of the system. scores: scores by metric key; BLEU of tokenised text is included if `tokenized` was set.
    by_length: BLEU by source length; empty if no source was given. translations: the scored translations.
    """

    system: str
    scores: Mapping[str, Score]
    by_length: tuple[LengthScore, ...]
    translations: tuple[str, ...] = field(repr=False)

    def __str__(self) -> str:
        return "\n".join([self.system, *self.score_lines()])

    def card(self) -> Card:
        """Return the scores, and BLEU by source length."""
        return Card(self.system, [*_scores([self], []), *_lengths(self)])

    def score_lines(self) -> list[str]:
        """Return the lines of the text that follow the name of the system."""
        lines = [f"  {score}" for score in self.scores.values()]
        if self.by_length:
            lines.append(f"  BLEU by source length ({self.by_length[0].unit})")
        for group in self.by_length:
            length = f"{group.shortest}{'…' if group.longest is None else f'–{group.longest}'}"
            lines.append(f"    {length:<8} {group.score.value:6.2f}  ({group.sentences} sentences)")
        return lines

    def as_json(self) -> dict[str, Any]:
        """Return all values except the translations as JSON types."""
        groups = [
            {
                "shortest": each.shortest,
                "longest": each.longest,
                "unit": each.unit,
                "sentences": each.sentences,
                "bleu": each.score.value,
            }
            for each in self.by_length
        ]
        return {
            "system": self.system,
            "scores": [score.as_json() for score in self.scores.values()],
            "by_length": groups,
        }


@dataclass(frozen=True)
class SystemComparison(Shown):
    """The comparison of the system `second` with the system `first`.

    metrics: comparisons by metric key. sentences: size of the test set.
    """

    first: str
    second: str
    metrics: Mapping[str, Comparison]
    sentences: int

    @property
    def _title(self) -> str:
        return f"{self.second} against {self.first}, paired bootstrap"

    def __str__(self) -> str:
        lines = [self._title]
        for comparison in self.metrics.values():
            lines.append(f"  {comparison.describe(self.sentences)} ({comparison.first.signature})")
        return "\n".join(lines)

    def marks(self) -> list[Mark]:
        """Return the significance of each difference. See `Marked`."""
        return [each.mark(self.sentences) for each in self.metrics.values()]

    def card(self) -> Card:
        """Return the difference by each metric, with its interval and its significance."""
        return Card(self._title, [each.describe(self.sentences) for each in self.metrics.values()])

    def as_json(self) -> dict[str, Any]:
        """Return all values as JSON types."""
        return {
            "first": self.first,
            "second": self.second,
            "sentences": self.sentences,
            "metrics": [each.as_json() for each in self.metrics.values()],
        }


@dataclass(frozen=True)
class Evaluation(Shown):
    """The scores of all systems, and comparisons of each system with the first. A model is always the first system.

    verdict: what the scores of a model mean. examples: lines of the first system. learning_curve: its scores after
    training on parts of its corpus.
    """

    systems: tuple[SystemScores, ...]
    comparisons: tuple[SystemComparison, ...]
    verdict: Verdict | None = None
    examples: ExampleLines | None = None
    learning_curve: LearningCurve | None = None

    def __getitem__(self, metric: str) -> Score:
        """Return the first system's score for a metric key. Raises KeyError if the metric was not computed."""
        return self.systems[0].scores[metric]

    def __str__(self) -> str:
        explanation = self.explanation()
        return "\n".join([*map(str, (*self.systems, *self.comparisons)), *([explanation] if explanation else [])])

    def marks(self) -> list[Mark]:
        """Return the marks of the comparisons and of the verdict. See `Marked`."""
        verdict = [] if self.verdict is None else self.verdict.marks()
        return [*(mark for each in self.comparisons for mark in each.marks()), *verdict]

    def card(self) -> Card:
        """Return the scores of all systems as one table, the comparisons, and what the text contains beside them."""
        others = (self.verdict, self.learning_curve, self.examples)
        cards = [each.card() for each in (*self.comparisons, *others) if each is not None]
        return Card("Evaluation", [*_scores(self.systems, self.comparisons), *_lengths(self.systems[0]), *cards])

    def explanation(self) -> str:
        """Return the verdict, the learning curve and the example lines as text; empty without them."""
        verdict = [] if self.verdict is None else [self.verdict.explanation]
        parts = [part for part in (self.learning_curve, self.examples) if part is not None]
        return "\n".join([*verdict, *(f"\n{part}" for part in parts)])

    def as_continuation(self) -> str:
        """Return the text to print after another part of the results. The name of a single system is not repeated."""
        if len(self.systems) == 1:
            return "\n".join(self.systems[0].score_lines())
        return str(self)

    @staticmethod
    def merge(parts: "Sequence[Evaluation]", metrics: Sequence[str]) -> "Evaluation":
        """Combine parts with scores by different metrics of the same systems. metrics: all metric keys in order."""
        systems = tuple(
            SystemScores(
                same[0].system,
                _in_order(metrics, [each.scores for each in same]),
                tuple(group for each in same for group in each.by_length),
                same[0].translations,
            )
            for same in zip(*(part.systems for part in parts), strict=True)
        )
        comparisons = tuple(
            SystemComparison(
                same[0].first, same[0].second, _in_order(metrics, [each.metrics for each in same]), same[0].sentences
            )
            for same in zip(*(part.comparisons for part in parts), strict=True)
        )
        return Evaluation(systems, comparisons)

    def as_json(self) -> dict[str, Any]:
        """Return all values as JSON types."""
        return {
            "systems": [each.as_json() for each in self.systems],
            "comparisons": [each.as_json() for each in self.comparisons],
            **({} if self.verdict is None else {"verdict": self.verdict.as_json()}),
            **({} if self.learning_curve is None else {"learning_curve": self.learning_curve.as_json()}),
            **({} if self.examples is None else {"examples": self.examples.as_json()}),
        }


def _scores(systems: Sequence[SystemScores], comparisons: Sequence[SystemComparison]) -> list[Part]:
    """Return a table with one row per system, and the signatures of the metrics.

    comparisons: of each system with the first, which have the intervals of the scores.
    """
    scores = list(systems[0].scores.values())
    intervals: list[dict[str, Interval]] = [
        *({key: each.first_interval for key, each in compared.metrics.items()} for compared in comparisons[:1]),
        *({key: each.second_interval for key, each in compared.metrics.items()} for compared in comparisons),
    ]
    rows = [
        [system.system, *(_cell(score, known.get(key)) for key, score in system.scores.items())]
        for system, known in zip(systems, intervals or [{}] * len(systems), strict=True)
    ]
    notes = [*map(Note, signatures(scores))]
    if intervals:
        notes.insert(0, Note("In parentheses: 95% of resampled test sets."))
    return [Table([["system", *(score.name for score in scores)], *rows], right=1), *notes]


def _cell(score: Score, interval: Interval | None) -> str:
    value = f"{score.value:.{score.digits}f}" if score.is_defined else "–"
    return value if interval is None else f"{value} ({interval.low:.{score.digits}f}–{interval.high:.{score.digits}f})"


def _lengths(system: SystemScores) -> list[Part]:
    """Return a table of BLEU by source length, if it was computed."""
    groups = [
        [f"{each.shortest}–{each.longest or '…'}", f"{each.score.value:.2f}", f"{each.sentences:,}"]
        for each in system.by_length
    ]
    if not groups:
        return []
    return [Table([[f"source length ({system.by_length[0].unit})", "BLEU", "sentences"], *groups], right=1)]


V = TypeVar("V")


def _in_order(keys: Sequence[str], mappings: Sequence[Mapping[str, V]]) -> dict[str, V]:
    """Return the union of the mappings, in the order of `keys`."""
    union = {key: value for mapping in mappings for key, value in mapping.items()}
    return {key: union[key] for key in keys if key in union}
