"""The section of a model card about the labels: their numbers, and the measures on the validation set."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from dragoman.base.files import atomic_write
from dragoman.checkpoint.card import table, with_section
from dragoman.checkpoint.folder import CARD
from dragoman.metrics.labels.report import Measure, Report

SECTION = "Labels"
_MAX_LABELS = 100
"""Maximum number of labels in the table; the most frequent ones are listed."""


def write_card_section(
    folder: Path,
    report: Report,
    data: str,
    labels: tuple[Iterable[str], Iterable[str]],
    facts: Sequence[tuple[str, str]] = (),
) -> None:
    """Add the section to the model card of a folder. An earlier section is replaced.

    report: the measures on the validation set, whose name is `data`. labels: the labels of the training and of the
    validation examples; empty if the model has no classes. facts: further rows about the training.
    """
    card = folder / CARD
    if card.is_file():
        lines = [*_measures(report, data), *_counts(*map(Counter, labels)), *_facts(facts)]
        atomic_write(card, with_section(card.read_text(encoding="utf-8"), SECTION, lines[:-1]))


def _measures(report: Report, data: str) -> list[str]:
    baseline = report.baseline
    rows = []
    for measure in report.measures:
        constant = None if baseline is None else baseline.values.get(measure.key)
        interval = measure.interval
        between = "–" if interval is None else f"{_format(measure, interval.low)} to {_format(measure, interval.high)}"
        rows.append((measure.name, _format(measure, measure.value), between, _format(measure, constant)))
    described = "" if baseline is None else f" The baseline is the constant prediction {baseline.description!r}."
    return [
        f"Measured on the validation set {data} ({report.examples:,} {report.unit}), which also selected the "
        f"checkpoint, so that the values are optimistic. The intervals contain 95% of {report.samples:,} resampled "
        f"sets.{described}",
        "",
        *table(("measure", "value", "95% interval", "baseline"), rows),
        "",
    ]


def _format(measure: Measure, value: float | None) -> str:
    return "–" if value is None else f"{value:.{measure.digits}f}"


def _counts(train: Counter[str], valid: Counter[str]) -> list[str]:
    if not train:
        return []
    listed = train.most_common(_MAX_LABELS)
    rows = [(label, f"{count:,}", f"{valid[label]:,}") for label, count in listed]
    rest = len(train) - len(listed)
    return [
        *table(("label", "training", "validation"), rows),
        *([f"There are {rest:,} further, rarer labels.", ""] if rest else [""]),
    ]


def _facts(facts: Sequence[tuple[str, str]]) -> list[str]:
    return [*table(("", ""), facts), ""] if facts else []
