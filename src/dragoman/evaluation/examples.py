"""`ExampleLines`: the worst and some typical translations of a test set, beside their sources and references."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dragoman.base.notebook import Card, Shown
from dragoman.base.table import Table
from dragoman.evaluation.test_set import TestSet
from dragoman.metrics.chrf import ChrF

_WIDTH = 160
"""Number of characters after which a text is cut in a terminal."""


@dataclass(frozen=True)
class ExampleLine:
    """A line of a test set. line: its number, from 1. score: chrF of the translation, the best over all references."""

    line: int
    score: float
    source: str | None
    translation: str
    reference: str

    def __str__(self) -> str:
        texts = {"source": self.source, "output": self.translation, "reference": self.reference}
        shown = [f"    {name:<9}  {_cut(text)}" for name, text in texts.items() if text is not None]
        return "\n".join([f"  line {self.line:,}, chrF {self.score:.0f}", *shown])

    def cells(self) -> tuple[str, ...]:
        """Return the values as text."""
        texts = (self.source or "", self.translation, self.reference)
        return f"{self.line:,}", f"{self.score:.0f}", *map(_cut, texts)


@dataclass(frozen=True)
class ExampleLines(Shown):
    """Lines with the lowest chrF, the worst one first, and lines whose chrF is nearest to the median."""

    worst: tuple[ExampleLine, ...]
    typical: tuple[ExampleLine, ...]

    @classmethod
    def of(cls, translations: Sequence[str], test_set: TestSet, count: int) -> "ExampleLines":
        """Choose up to `count` lines of each kind. Lines without a reference are left out; no line is of both kinds."""
        chrf = ChrF()
        scores = np.max([chrf.sentence_scores(translations, lines) for lines in test_set.references], axis=0)
        order = [row for row in np.argsort(scores, kind="stable").tolist() if test_set.references[0][row].strip()]
        count = min(count, len(order) // 2)
        middle = max(count, (len(order) - count) // 2)
        sources = test_set.sources

        def line(row: int) -> ExampleLine:
            source, reference = None if sources is None else sources[row], test_set.references[0][row]
            return ExampleLine(row + 1, float(scores[row]), source, translations[row], reference)

        return cls(tuple(map(line, order[:count])), tuple(map(line, order[middle : middle + count])))

    def _groups(self) -> dict[str, tuple[ExampleLine, ...]]:
        groups = {"Worst lines, by chrF": self.worst, "Typical lines, by chrF": self.typical}
        return {title: lines for title, lines in groups.items() if lines}

    def __str__(self) -> str:
        return "\n".join(line for title, lines in self._groups().items() for line in (title, *map(str, lines)))

    def card(self) -> Card:
        """Return a table of the lines of each kind."""
        header = ("line", "chrF", "source", "output", "reference")
        return Card(
            "Lines of the test set",
            [
                Card(title, [Table([header, *(each.cells() for each in lines)])])
                for title, lines in self._groups().items()
            ],
        )

    def as_json(self) -> dict[str, Any]:
        """Return all values as JSON types."""
        return {"worst": [asdict(each) for each in self.worst], "typical": [asdict(each) for each in self.typical]}


def _cut(text: str) -> str:
    """Return a text for a terminal: without control characters, and not too long."""
    printable = "".join(each if each.isprintable() else "\ufffd" for each in text)
    return printable if len(printable) <= _WIDTH else f"{printable[: _WIDTH - 1]}…"
