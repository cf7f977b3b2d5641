"""`SystemTable`: systems with several seeds, as a table for a paper or a terminal."""

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, Literal, get_args

from dragoman.base.errors import ConfigError
from dragoman.base.marks import Level, Mark
from dragoman.base.notebook import Card, Note, Shown
from dragoman.base.table import Table
from dragoman.metrics.score import Score, signatures
from dragoman.metrics.seed_comparison import SeedComparison

TableFormat = Literal["text", "markdown", "latex", "csv", "json"]
TABLE_FORMATS: tuple[TableFormat, ...] = get_args(TableFormat)

_DAGGER = "†"


def check_table_format(table_format: str) -> None:
    """Raise ConfigError for an unknown format."""
    if table_format not in TABLE_FORMATS:
        raise ConfigError(f"unknown format {table_format!r}: expected one of {', '.join(TABLE_FORMATS)}")


@dataclass(frozen=True)
class SystemRow:
    """A system. scores: the score of each seed by metric key. comparisons: with the first system, by metric key."""

    name: str
    scores: Mapping[str, Sequence[Score]]
    comparisons: Mapping[str, SeedComparison]

    @property
    def seeds(self) -> int:
        """The number of seeds."""
        return len(next(iter(self.scores.values())))

    def mean(self, key: str) -> float:
        """Return the mean of a metric over the seeds."""
        return fmean(each.value for each in self.scores[key])

    def deviation(self, key: str) -> float | None:
        """Return the sample standard deviation of a metric over the seeds; None for one seed."""
        values = [each.value for each in self.scores[key]]
        return stdev(values) if len(values) > 1 else None

    def cell(self, key: str, sign: str = "±") -> str:
        """Return the mean and the standard deviation as text."""
        digits, deviation = self.scores[key][0].digits, self.deviation(key)
        spread = "" if deviation is None else f" {sign} {deviation:.{digits}f}"
        return f"{self.mean(key):.{digits}f}{spread}"


@dataclass(frozen=True)
class SystemTable(Shown):
    """Systems on one test set, each compared with the first. data: name of the test set. sentences: its size.

    unit: name of what is counted. remarks: further notes for readers of the table.
    """

    rows: Sequence[SystemRow]
    data: str
    sentences: int
    unit: str = "sentences"
    remarks: Sequence[str] = ()

    @property
    def metrics(self) -> list[Score]:
        """One score of each metric, which has its name and its signature."""
        return [scores[0] for scores in self.rows[0].scores.values()]

    def best(self, key: str) -> SystemRow:
        """Return the system with the best mean."""
        is_lower = self.rows[0].scores[key][0].better == "lower"
        return (min if is_lower else max)(self.rows, key=lambda row: row.mean(key))

    def format(self, table_format: TableFormat) -> str:
        """Return the table as text. Raises ConfigError for an unknown format."""
        check_table_format(table_format)
        if table_format == "json":
            return json.dumps(self.as_json(), ensure_ascii=False, indent=2)
        writers = {"text": self._text, "markdown": self._markdown, "latex": self._latex, "csv": self._csv}
        return writers[table_format]()

    def __str__(self) -> str:
        return self.format("text")

    def notes(self) -> list[str]:
        """Return what a reader of the table has to know: the test set, the signatures and the tests."""
        notes = [f"{self.data}, {self.sentences:,} {self.unit}; mean ± standard deviation over the seeds."]
        notes += signatures(self.metrics)
        if any(row.comparisons for row in self.rows):
            first = self.rows[0].name
            notes.append(f"{_DAGGER} significantly different from {first} at 0.05, tested over seeds and {self.unit}.")
        single = [row.name for row in self.rows if row.seeds == 1]
        if single and len(self.rows) > 1:
            notes.append(
                f"One seed of {', '.join(single)}: a difference may be the luck of its training, and is not called "
                "significant. Train three or more seeds (seeds=3)."
            )
        return [*notes, *self.remarks]

    def _mark(self, row: SystemRow, key: str) -> str:
        compared = row.comparisons.get(key)
        return _DAGGER if compared is not None and compared.is_significant else ""

    def _cells(self, sign: str = "±") -> list[list[str]]:
        """Return the rows of the table, of which the first is the header."""
        header = ["system", "seeds", *(each.name for each in self.metrics)]
        rows = [
            [row.name, str(row.seeds), *(row.cell(each.key, sign) + self._mark(row, each.key) for each in self.metrics)]
            for row in self.rows
        ]
        return [header, *rows]

    def _text(self) -> str:
        return "\n".join([Table(self._cells()).text(), *self._differences(), *self.notes()])

    def card(self) -> Card:
        """Return the table, the differences and the notes."""
        return Card("Comparison", [Table(self._cells(), right=1), *self._differences(), *map(Note, self.notes())])

    def _differences(self) -> list[str]:
        """Return a line for each comparison."""
        return [mark.line for mark in self.marks()]

    def marks(self) -> list[Mark]:
        """Return the p-value of each difference, good if the system is significantly better than the first."""
        return [self._mark_of(row, key) for row in self.rows[1:] for key in row.comparisons]

    def _mark_of(self, row: SystemRow, key: str) -> Mark:
        """Return the p-value of a comparison with the first system, in the line that describes the comparison."""
        compared, score = row.comparisons[key], row.scores[key][0]
        low, high = (f"{value:+z.{score.digits}f}" for value in (compared.interval.low, compared.interval.high))
        p_value = f"p = {compared.p_value:.4f}"
        extent = "" if compared.includes_training else ", for these models only"
        line = (
            f"{row.name} − {self.rows[0].name}: {score.name} {compared.difference:+z.{score.digits}f} (95%: {low} to "
            f"{high}), {p_value}{extent}"
        )
        is_gain = (compared.difference < 0) == (score.better == "lower")
        level: Level = "warning" if not compared.is_significant else "good" if is_gain else "bad"
        return Mark(level, p_value, line)

    def _bold(self, before: str, after: str, sign: str) -> list[list[str]]:
        """Return the cells, with the best mean of each metric between two marks."""
        cells = self._cells(sign)
        if len(self.rows) > 1:
            for column, each in enumerate(self.metrics, start=2):
                row = self.rows.index(self.best(each.key)) + 1
                cells[row][column] = f"{before}{cells[row][column]}{after}"
        return cells

    def _markdown(self) -> str:
        table = Table(self._bold("**", "**", "±"), right=1).markdown()
        return "\n".join([*table, "", *(f"{note}  " for note in self.notes())])

    def _latex(self) -> str:
        header, *rows = self._bold(r"\textbf{", "}", r"$\pm$")
        body = [[_escape(row[0]), *(cell.replace(_DAGGER, r"$^\dagger$") for cell in row[1:])] for row in rows]
        lines = [" & ".join(row) + r" \\" for row in [[_escape(each) for each in header], *body]]
        columns = "l" + "r" * (len(header) - 1)
        comments = [f"% {note.replace(_DAGGER, 'dagger:')}" for note in self.notes()]
        top, middle, bottom = r"\toprule", r"\midrule", r"\bottomrule"
        table = [rf"\begin{{tabular}}{{{columns}}}", top, lines[0], middle, *lines[1:], bottom, r"\end{tabular}"]
        return "\n".join([*comments, r"% \usepackage{booktabs}", *table])

    def _csv(self) -> str:
        """Return one row per seed and metric, as programs for statistics read it."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["system", "seed", "metric", "value", "signature"])
        for row in self.rows:
            for scores in row.scores.values():
                for number, score in enumerate(scores, start=1):
                    writer.writerow([row.name, number, score.name, score.value, score.signature])
        return text.getvalue().rstrip("\n")

    def as_json(self) -> dict[str, Any]:
        """Return all values as JSON types."""
        return {
            "data": self.data,
            self.unit: self.sentences,
            "systems": [
                {
                    "system": row.name,
                    "scores": {
                        key: {
                            "mean": row.mean(key),
                            "sd": row.deviation(key),
                            "values": [each.value for each in scores],
                            "signature": scores[0].signature,
                        }
                        for key, scores in row.scores.items()
                    },
                    "against_first": {key: _comparison_json(each) for key, each in row.comparisons.items()},
                }
                for row in self.rows
            ],
            "notes": self.notes(),
        }


def _comparison_json(compared: SeedComparison) -> dict[str, Any]:
    return {
        "difference": compared.difference,
        "low": compared.interval.low,
        "high": compared.interval.high,
        "p_value": compared.p_value,
        "significant": compared.is_significant,
        "includes_training": compared.includes_training,
    }


def _escape(text: str) -> str:
    """Return a text for LaTeX, in which none of its characters is a command."""
    return re.sub(r"[&%$#_{}]", lambda found: "\\" + found[0], text.replace("\\", "/")).replace("~", r"\~{}")
