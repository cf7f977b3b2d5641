"""The learning curves of a run, and of several runs, from their logs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.base.errors import ConfigError, DataError
from dragoman.figures.curves import Curve, CurvePanel, Curves, Floats
from dragoman.metrics.metric import Metric
from dragoman.metrics.registry import METRICS
from dragoman.training.progress.run_log import Record, RunLog, series

_DEFAULT_METRICS = ("perplexity", "bleu", "chrf")
"""Translation metrics, shown before the first validation."""
_REDUNDANT_METRICS = ("word_perplexity", "byte_perplexity")
"""Metrics that express another metric in a different unit."""
_SMOOTHED = 20
"""Number of losses above which their moving mean is shown."""

_LOG = "log.jsonl"

_VALIDATION = 1
"""Number of the colour of validations in the curves of a single run; that of the training is 0."""

_SLIDE = "deck 002, the decoder, training, evaluation"


def training_curves(records: Sequence[Record]) -> Curves:
    """Return the loss, each validation metric and the learning rate of a run over its steps.

    If there are several validation sets, each has a thin line in addition to their mean. In multi-task training, each
    task has a loss curve. records: see `RunLog`.
    """
    metrics = [_metric_panel(records, key) for key in _metric_keys(records) or _DEFAULT_METRICS]
    rates = Curve("learning rate", *series(records, "learning_rate"))
    panels = (_loss_panel(records), *metrics, CurvePanel("Learning rate", "", (rates,)))
    return Curves(
        title=_progress_text(records),
        caption="The loss, the metrics on the validation set, and the learning rate of a training run.",
        slide=_SLIDE,
        limits="The training loss contains dropout and smoothed labels; compare the validation loss between runs.",
        panels=panels,
    )


def draw_curves(log: Path, picture: Path) -> None:
    """Draw the learning curves of a run. log: its `log.jsonl`. picture: the file to write."""
    training_curves(RunLog(log).records).write(picture)


def run_curves(folders: Sequence[str | Path]) -> Curves:
    """Return the curves of the runs in these folders, or of a single run, also while they train.

    Raises ConfigError for a folder that is given twice, and DataError for a folder without a readable log.
    """
    paths = [Path(folder) for folder in folders]
    names = [path.resolve().name for path in paths]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    if len(set(names)) < len(names):
        raise ConfigError("each run can be drawn once: give each folder once")
    runs = {name: read_run(path) for name, path in zip(names, paths, strict=True)}
    return compared_curves(runs) if len(runs) > 1 else training_curves(runs[names[0]])


def read_run(folder: Path) -> list[Record]:
    """Return the log of a run. Raises DataError for a folder without a readable log."""
    try:
        return RunLog(folder / _LOG).records
    except OSError as error:
        raise DataError(f"cannot read {folder / _LOG}: {error.strerror}. Give the folder of a training run") from None


def compared_curves(runs: Mapping[str, Sequence[Record]]) -> Curves:
    """Return the curves of several runs over each other: losses, each validation metric, learning rate and speed.

    runs: the records of each run, see `RunLog`, by its name in the legend.
    """
    keys = dict.fromkeys(key for records in runs.values() for key in _metric_keys(records))
    fields: list[tuple[str, str, str, bool]] = [
        ("Training loss", "nats per target token", "loss", False),
        ("Validation loss", "nats per target token", "valid_loss", True),
        *((_metric_title(key), _unit(key), f"valid_{key}", True) for key in keys or _DEFAULT_METRICS),
        ("Learning rate", "", "learning_rate", False),
        ("Speed", "target tokens per second", "target_tokens_per_second", False),
    ]
    panels = tuple(
        CurvePanel(
            heading,
            unit,
            tuple(
                Curve(name, *series(records, key), colour, "points" if is_validation else "line")
                for colour, (name, records) in enumerate(runs.items())
            ),
            is_logarithmic=is_validation
            and _spans_magnitudes([series(records, key)[1] for records in runs.values()], key),
        )
        for heading, unit, key, is_validation in fields
    )
    return Curves(
        title=f"{len(runs)} runs" if len(runs) != 1 else next(iter(runs)),
        caption="The losses, the metrics on the validation set, the learning rate, and the speed of several runs.",
        slide=_SLIDE,
        limits="Losses are comparable only between runs with the same vocabulary and label smoothing.",
        panels=panels,
    )


def system_curves(systems: Mapping[str, Sequence[Sequence[Record]]]) -> Curves:
    """Return the validation metrics of systems over the steps: the mean of the seeds, and a band from worst to best.

    systems: the records of each seed, see `RunLog`, by the name of the system. The curve of a system ends where the
    first of its seeds ends, since a mean over other seeds is another one.
    """
    every = [records for seeds in systems.values() for records in seeds]
    panels = []
    for key in dict.fromkeys(key for records in every for key in _metric_keys(records)) or _DEFAULT_METRICS:
        curves = []
        for colour, (name, seeds) in enumerate(systems.items()):
            rows = [
                dict(zip(*(each.tolist() for each in series(records, f"valid_{key}")), strict=True))
                for records in seeds
            ]
            steps = sorted(set(rows[0]).intersection(*rows[1:]))
            values = np.array([[row[step] for step in steps] for row in rows], np.float64).reshape(
                len(rows), len(steps)
            )
            band = (values.min(0), values.max(0)) if len(seeds) > 1 else None
            curves.append(Curve(name, np.array(steps, np.float64), values.mean(0), colour, "points", band))
        is_logarithmic = _spans_magnitudes([each.y for each in curves], key)
        panels.append(CurvePanel(_metric_title(key), _unit(key), tuple(curves), is_logarithmic))
    return Curves(
        title=" · ".join(systems),
        caption="The metrics on the validation set: the mean and the range of the seeds of each system.",
        slide=_SLIDE,
        limits="A system of one seed has no range: its difference from others may be the luck of its training.",
        panels=tuple(panels),
    )


def _metric_keys(records: Sequence[Record]) -> list[str]:
    """Return the logged validation metrics, without losses and redundant metrics."""
    keys = dict.fromkeys(
        key.removeprefix("valid_")
        for record in records
        for key, value in record.items()
        if key.startswith("valid_") and isinstance(value, int | float) and not key.endswith(_REDUNDANT_METRICS)
    )
    return [key for key in keys if not key.endswith("loss")]


def _metric(key: str) -> Metric | None:
    """Return the metric of a key of the log. Keys of auxiliary tasks have the task's name as a prefix."""
    return next((each for each in METRICS.values() if key == each.key or key.endswith(f"_{each.key}")), None)


def _metric_title(key: str) -> str:
    metric = _metric(key)
    return f"Validation {metric.name if metric is not None and metric.key == key else key.replace('_', ' ')}"


def _unit(key: str) -> str:
    metric = _metric(key)
    return "" if metric is None else metric.unit


def _loss_panel(records: Sequence[Record]) -> CurvePanel:
    tasks = list(dict.fromkeys(task for record in records for task in record.get("losses", {})))
    curves: list[Curve] = []
    colours = [0, *range(_VALIDATION + 1, _VALIDATION + len(tasks))]
    for task, colour in zip(tasks, colours, strict=False):
        points = [(record["step"], record["losses"][task]) for record in records if task in record.get("losses", {})]
        curves.append(Curve(f"training, {task}", *_points(points), colour))
    if not tasks:
        steps, values = series(records, "loss")
        curves.append(Curve("training", steps, values, style="faint" if len(steps) > _SMOOTHED else "line"))
    training = [curve.y for curve in curves]
    if not tasks and len(steps) > _SMOOTHED:
        curves.append(Curve("training, moving mean (dropout, smoothed labels)", steps, _smooth(values)))
    name = f"validation, {tasks[0]}" if tasks else "validation"
    curves.append(Curve(name, *series(records, "valid_loss"), _VALIDATION, "points"))
    valid = curves[-1].y
    for task, colour in zip(tasks[1:], colours[1:], strict=True):
        curves.append(Curve(f"validation, {task}", *series(records, f"valid_{task}_loss"), colour, "points"))
    # exclude the first steps, whose loss is far above the rest
    tail = np.concatenate([*(values[len(values) // 20 :] for values in training), valid])
    limits = None
    if len(tail) > 5:
        low, high = float(tail.min()), float(np.percentile(tail, 99))
        margin = 0.06 * (high - low + 0.1)
        limits = (low - margin, high + margin)
    return CurvePanel("Loss", "nats per target token", tuple(curves), limits=limits)


def _metric_panel(records: Sequence[Record], key: str) -> CurvePanel:
    metric = _metric(key)
    is_lower_better = metric is not None and metric.better == "lower"
    steps, values = series(records, f"valid_{key}")
    parts = _validation_sets(records, key)
    mean = Curve("mean" if parts else "validation", steps, values, _VALIDATION, "points")
    if not len(values):
        return CurvePanel(_metric_title(key), _unit(key), (mean, *parts), note="no validation yet")
    best = int(values.argmin() if is_lower_better else values.argmax())
    shown = f"{values[best]:.1f}" if metric is not None and metric.unit == "points" else f"{values[best]:.2f}"
    return CurvePanel(
        f"{_metric_title(key)} · best {shown} at step {steps[best]:,.0f}",
        _unit(key),
        (mean, *parts),
        is_logarithmic=is_lower_better and _spans_magnitudes([values], f"valid_{key}"),
        best=(float(steps[best]), float(values[best])),
    )


def _spans_magnitudes(values: Sequence[Floats], key: str) -> bool:
    """Return whether the values of a metric for which lower values are better need a logarithmic axis."""
    metric, known = _metric(key.removeprefix("valid_")), np.concatenate(values)
    if metric is None or metric.better != "lower" or not len(known) or known.min() <= 0:
        return False
    return bool(known.max() / known.min() > 20)


def _validation_sets(records: Sequence[Record], key: str) -> list[Curve]:
    """Return one curve per validation set if there are several."""
    validations = [record for record in records if isinstance(record.get("valid_sets"), dict)]
    names = list(dict.fromkeys(name for record in validations for name in record["valid_sets"]))
    curves = []
    for number, name in enumerate(names):
        points = [
            (record["step"], record["valid_sets"][name][key])
            for record in validations
            if key in record["valid_sets"].get(name, {})
        ]
        if points:
            # matplotlib omits labels that start with an underscore from the legend
            curves.append(Curve(name.lstrip("_"), *_points(points), number, "part"))
    return curves


def _points(points: Sequence[tuple[Any, Any]]) -> tuple[Floats, Floats]:
    table = np.array(points, np.float64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _smooth(values: Floats) -> Floats:
    """Return a bias-corrected exponential moving average over about 1% of the run."""
    decay = 1 - 1 / max(4.0, len(values) / 100)
    total, weight, smoothed = 0.0, 0.0, np.empty_like(values)
    for index, value in enumerate(values.tolist()):
        total, weight = decay * total + value, decay * weight + 1
        smoothed[index] = total / weight
    return smoothed


def _progress_text(records: Sequence[Record]) -> str:
    if not records:
        return "nothing logged yet"
    last = records[-1]
    parts = [f"step {last['step']:,.0f}"]
    if isinstance(last.get("epoch"), int | float):
        parts.append(f"epoch {last['epoch']:g}")
    seconds = [record["seconds"] for record in records if isinstance(record.get("seconds"), int | float)]
    if seconds:
        parts.append(f"{seconds[-1] / 60:.1f} minutes")
    return " · ".join(parts)
