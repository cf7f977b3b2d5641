"""The section of a model card about the labels: their numbers, and the scores on the validation set."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dragoman.base.files import atomic_write
from dragoman.base.log import quietly, warn
from dragoman.base.table import Table
from dragoman.checkpoint.card.markdown import with_section
from dragoman.checkpoint.folder import CARD
from dragoman.checkpoint.start import Start
from dragoman.inference.prediction.heads.report import compare_with_labels
from dragoman.inference.prediction.predictor import Predictor
from dragoman.metrics.labels.report import Report
from dragoman.metrics.score import Score
from dragoman.training.progress.final_steps import FinalSteps
from dragoman.training.task import Content, RunConfig

SECTION = "Labels"
_MAX_LABELS = 100
"""Maximum number of labels in the table; the most frequent ones are listed."""


def report_on_validation(
    folder: Path, examples: Sequence[Any], device: str, steps: FinalSteps, *, task: str | None = None
) -> Report | None:
    """Return the scores of a final model on the validation set, with intervals and a baseline; None without time.

    Prints the warnings of the report. task: name of the task if the model has several. Raises the errors of
    `Predictor.load`.
    """

    def measure() -> Report:
        predictor = Predictor.load(folder, device, task=task, engine="torch")
        with quietly():
            predictions = predictor.predict(examples)
        return compare_with_labels(predictor.head, examples, predictions)

    where = "the validation set" if task is None else f"the validation set of {task}"
    name = f"scores with intervals and a baseline on {where}"
    report = steps.run(name, measure, remedy="dragoman evaluate labels measures them")
    for text in () if report is None else report.warnings.values():
        warn(f"on {where}: {text}")
    return report


def write_card_section(
    folder: Path,
    report: Report | None,
    data: str,
    labels: tuple[Iterable[str], Iterable[str]],
    *,
    facts: Sequence[tuple[str, str]] = (),
    task: str | None = None,
) -> None:
    """Add the section to the model card of a folder. An earlier section is replaced.

    report: the scores on the validation set, whose name is `data`; None if they were not measured. labels: the labels
    of the training and of the validation examples; empty if the model has no classes. facts: further rows about the
    training. task: name of the task if the model has several, each of which has its own section.
    """
    card = folder / CARD
    if card.is_file():
        title = SECTION if task is None else f"{SECTION} of {task}"
        lines = [*([] if report is None else _scores(report, data)), *_counts(*map(Counter, labels)), *_facts(facts)]
        atomic_write(card, with_section(card.read_text(encoding="utf-8"), title, lines[:-1]))


def training_facts(run: RunConfig, start: Start | None, valid: Content) -> list[tuple[str, str]]:
    """Return rows for a model card: the seed, the selection of the checkpoint, the start, and frozen parts.

    start: the model that the run started from. valid: the validation set.
    """
    train = run.train
    facts = [
        ("Seed", str(train.seed)),
        ("Checkpoint selected by", f"{train.metric} on {valid.name}"),
        ("Fingerprint of the validation set", f"`{valid.fingerprint}`"),
    ]
    if start is not None and train.start is not None:
        origin = start.loaded.meta.origin
        facts.append(("Initialised from", f"{train.start}{f', which was imported: {origin}' if origin else ''}"))
    if train.freeze:
        facts.append(("Parts that were not trained", ", ".join(train.freeze)))
    if train.unfreeze_every is not None:
        facts.append(("Gradual unfreezing", f"one more layer from the top after every {train.unfreeze_every} epochs"))
    return facts


def write_training_section(folder: Path, facts: Sequence[tuple[str, str]]) -> None:
    """Add a section about the training to the model card of a folder. An earlier section is replaced."""
    card = folder / CARD
    if card.is_file():
        text = card.read_text(encoding="utf-8")
        atomic_write(card, with_section(text, "Training", Table([("", ""), *facts]).markdown()))


def _scores(report: Report, data: str) -> list[str]:
    baseline = report.baseline
    rows = []
    for score in report.scores:
        constant = None if baseline is None else baseline.values.get(score.key)
        interval = score.interval
        between = "–" if interval is None else f"{_format(score, interval.low)} to {_format(score, interval.high)}"
        value = score.value if score.is_defined else None
        rows.append((score.name, _format(score, value), between, _format(score, constant)))
    described = "" if baseline is None else f" The baseline is {baseline.description}."
    return [
        f"Measured on the validation set {data} ({report.examples:,} {report.unit}), which also selected the "
        f"checkpoint, so that the values are optimistic. The intervals contain 95% of {report.samples:,} resampled "
        f"sets.{described}",
        "",
        *Table([("metric", "value", "95% interval", "baseline"), *rows]).markdown(),
        "",
    ]


def _format(score: Score, value: float | None) -> str:
    return "–" if value is None else f"{value:.{score.digits}f}"


def _counts(train: Counter[str], valid: Counter[str]) -> list[str]:
    if not train:
        return []
    listed = train.most_common(_MAX_LABELS)
    rows = [(label, f"{count:,}", f"{valid[label]:,}") for label, count in listed]
    rest = len(train) - len(listed)
    return [
        *Table([("label", "training", "validation"), *rows]).markdown(),
        *([f"There are {rest:,} further, rarer labels.", ""] if rest else [""]),
    ]


def _facts(facts: Sequence[tuple[str, str]]) -> list[str]:
    return [*Table([("", ""), *facts]).markdown(), ""] if facts else []
