"""Plots of a run's learning curves."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from math import ceil, isfinite
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from dragoman.inspect.pictures.figure import BLUE, GRID, INK, ORANGE, QUIET, new_figure, save
from dragoman.metrics.registry import METRICS

_TASK_COLOURS = (BLUE, "#2e8b57", "#8a4fa8", "#b03a48")
"""Colours of the loss curves in multi-task training."""


@dataclass(frozen=True)
class _Panel:
    """A panel for a validation metric.

    key: the metric's key in the log, without `valid_`. unit: unit of the vertical axis. is_lower_better: whether lower
    values are better. number_format: format of the best value in the title.
    """

    key: str
    title: str
    unit: str
    is_lower_better: bool
    number_format: str = "{:.2f}"


_DEFAULT_METRICS = ("perplexity", "bleu", "chrf")
"""Translation metrics, shown before the first validation."""
_REDUNDANT_METRICS = ("word_perplexity", "byte_perplexity")
"""Metrics that express another metric in a different unit."""


def draw_curves(log: Path, png: Path) -> None:
    """Plot the loss, each validation metric and the learning rate in a run's `log.jsonl` over the training steps.

    If there are several validation sets, each has a thin line in addition to their mean. In multi-task training, each
    task has a loss curve. log: the log file. png: the output file.
    """
    records = _read_log(log)
    panels = _panels(records)
    count = len(panels) + 2
    columns = 2 if count <= 4 else 3
    rows = ceil(count / columns)
    figure = new_figure(5.25 * columns, 3.3 * rows)
    loss_axes, *metric_axes, rate_axes = (figure.add_subplot(rows, columns, index + 1) for index in range(count))
    _draw_loss(loss_axes, records)
    for axes, panel in zip(metric_axes, panels, strict=True):
        _draw_metric(axes, records, panel)
    steps, values = _series(records, "learning_rate")
    _draw_line(rate_axes, steps, values, BLUE, "learning rate")
    rate_axes.ticklabel_format(axis="y", style="sci", scilimits=(-2, 2), useMathText=True)
    rate_axes.yaxis.get_offset_text().set_fontsize(8)
    _format_axes(rate_axes, "Learning rate", "")
    figure.suptitle(_progress_text(records), fontsize=9, color=QUIET, x=0.02, ha="left")
    save(figure, png)


def _panels(records: Sequence[dict[str, Any]]) -> list[_Panel]:
    """Return one panel per logged metric, or the default metrics before the first validation."""
    keys = dict.fromkeys(
        key.removeprefix("valid_")
        for record in records
        for key, value in record.items()
        if key.startswith("valid_") and isinstance(value, int | float) and not key.endswith(_REDUNDANT_METRICS)
    )
    metrics = [key for key in keys if not key.endswith("loss")] or list(_DEFAULT_METRICS)
    return [_panel(key) for key in metrics]


def _panel(key: str) -> _Panel:
    """Return the panel for a key of the log. Keys of auxiliary tasks have the task's name as a prefix."""
    title = f"Validation {key.replace('_', ' ')}"
    for metric in METRICS.values():
        if key == metric.key or key.endswith(f"_{metric.key}"):
            number_format = "{:.1f}" if metric.unit == "points" else "{:.2f}"
            title = f"Validation {metric.name}" if key == metric.key else title
            return _Panel(key, title, metric.unit, metric.better == "lower", number_format)
    return _Panel(key, title, "", is_lower_better=False)


def _draw_loss(axes: Axes, records: Sequence[dict[str, Any]]) -> None:
    tasks = list(dict.fromkeys(task for record in records for task in record.get("losses", {})))
    training_losses: list[np.ndarray] = []
    for index, task in enumerate(tasks):
        points = [(record["step"], record["losses"][task]) for record in records if task in record.get("losses", {})]
        steps, values = np.array(points, dtype=np.float64).T
        _draw_line(axes, steps, values, _TASK_COLOURS[index % len(_TASK_COLOURS)], f"training, {task}")
        training_losses.append(values)
    if not tasks:
        steps, values = _series(records, "loss")
        _draw_line(axes, steps, values, BLUE, "training", alpha=0.28 if len(steps) > 20 else 1.0)
        if len(steps) > 20:
            _draw_line(axes, steps, _smooth(values), BLUE, "training, moving mean (dropout, smoothed labels)")
        training_losses.append(values)
    valid_steps, valid = _series(records, "valid_loss")
    _draw_line(axes, valid_steps, valid, ORANGE, f"validation, {tasks[0]}" if tasks else "validation", marker="o")
    for index, task in enumerate(tasks[1:], start=1):
        steps, values = _series(records, f"valid_{task}_loss")
        colour = _TASK_COLOURS[index % len(_TASK_COLOURS)]
        _draw_line(axes, steps, values, colour, f"validation, {task}", marker="o")
    _format_axes(axes, "Loss", "nats per target token")
    if not (len(valid) or any(map(len, training_losses))):
        return
    axes.legend(frameon=False, fontsize=8, labelcolor=INK)
    # exclude the first steps, whose loss is far above the rest
    tail = np.concatenate([*(values[len(values) // 20 :] for values in training_losses), valid])
    if len(tail) > 5:
        low, high = float(tail.min()), float(np.percentile(tail, 99))
        axes.set_ylim(low - 0.06 * (high - low + 0.1), high + 0.06 * (high - low + 0.1))


def _draw_metric(axes: Axes, records: Sequence[dict[str, Any]], panel: _Panel) -> None:
    steps, values = _series(records, f"valid_{panel.key}")
    _draw_line(axes, steps, values, ORANGE, "validation", marker="o")
    _draw_validation_sets(axes, records, panel.key)
    if panel.is_lower_better and len(values) and values.min() > 0 and values.max() / values.min() > 20:
        axes.set_yscale("log")
    index = int(values.argmin() if panel.is_lower_better else values.argmax()) if len(values) else 0
    _format_axes(axes, f"{panel.title}{_mark_best(axes, steps, values, index, panel.number_format)}", panel.unit)


def _read_log(log: Path) -> list[dict[str, Any]]:
    """Return the records in step order.

    If a step was logged twice because the run was resumed, the last record is used. Incomplete lines are ignored.
    """
    records: dict[tuple[float, bool], dict[str, Any]] = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and isinstance(record.get("step"), int | float):
            is_validation = any(key.startswith("valid_") for key in record)
            records[record["step"], is_validation] = record
    return [records[key] for key in sorted(records)]


def _series(records: Sequence[dict[str, Any]], key: str) -> tuple[np.ndarray, np.ndarray]:
    points = [(r["step"], r[key]) for r in records if isinstance(r.get(key), int | float) and isfinite(r[key])]
    table = np.array(points, dtype=np.float64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _smooth(values: np.ndarray) -> np.ndarray:
    """Return a bias-corrected exponential moving average over about 1% of the run."""
    decay = 1 - 1 / max(4.0, len(values) / 100)
    total, weight, smoothed = 0.0, 0.0, np.empty_like(values)
    for index, value in enumerate(values):
        total, weight = decay * total + float(value), decay * weight + 1
        smoothed[index] = total / weight
    return smoothed


def _draw_line(
    axes: Axes, steps: np.ndarray, values: np.ndarray, colour: str, label: str, alpha: float = 1.0, marker: str = ""
) -> None:
    if len(steps):
        name = None if alpha < 1 else label
        axes.plot(
            steps,
            values,
            color=colour,
            label=name,
            alpha=alpha,
            linewidth=1.6 if alpha == 1 else 1,
            marker=marker or ("o" if len(steps) == 1 else ""),  # a line of one point is invisible
            markersize=3.5,
        )


def _draw_validation_sets(axes: Axes, records: Sequence[dict[str, Any]], key: str) -> None:
    """Draw one line per validation set if there are several."""
    validations = [record for record in records if isinstance(record.get("valid_sets"), dict)]
    names = list(dict.fromkeys(name for record in validations for name in record["valid_sets"]))
    # markers make a single validation visible
    for name, (style, marker) in zip(names, cycle((("--", "v"), (":", "s"), ("-.", "^"))), strict=False):
        points = [
            (record["step"], record["valid_sets"][name][key])
            for record in validations
            if key in record["valid_sets"].get(name, {})
        ]
        if not points:
            continue
        # matplotlib omits labels that start with an underscore from the legend
        label = name.lstrip("_")
        axes.plot(*zip(*points, strict=True), style, color=QUIET, linewidth=1, marker=marker, markersize=3, label=label)
    if names and axes.get_lines():
        axes.get_lines()[0].set_label("mean")
        for text in axes.legend(frameon=False, fontsize=8, labelcolor=INK).get_texts():
            text.set_parse_math(False)


def _mark_best(axes: Axes, steps: np.ndarray, values: np.ndarray, index: int, number_format: str) -> str:
    """Mark the best value, at `index`, and return its description for the title."""
    if not len(values):
        axes.text(0.5, 0.5, "no validation yet", transform=axes.transAxes, ha="center", color=QUIET, fontsize=9)
        return ""
    axes.plot(steps[index], values[index], marker="o", markersize=8, markerfacecolor="none", markeredgecolor=INK)
    return f" · best {number_format.format(values[index])} at step {steps[index]:,.0f}"


def _format_axes(axes: Axes, title: str, unit: str) -> None:
    axes.set_title(title, fontsize=11, color=INK, loc="left")
    if unit:
        axes.set_ylabel(unit, fontsize=8, color=QUIET)
    axes.set_xlabel("step", fontsize=8, color=QUIET)
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8, colors=QUIET, length=0)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(GRID)


def _progress_text(records: Sequence[dict[str, Any]]) -> str:
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
