"""Pictures as PNG files: an attention heat map, any matrices as heat maps, and a run's learning curves."""

import json
import warnings
from collections.abc import Mapping, Sequence
from io import BytesIO
from itertools import cycle
from math import ceil, isfinite
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from dragoman.base.files import atomic_write
from dragoman.inspect.attention import AttentionMap

INK, QUIET, GRID = "#1f2933", "#66737f", "#e4e8ec"
BLUE, ORANGE = "#1f5fa8", "#d9731a"
SIGNED = LinearSegmentedColormap.from_list("signed", ["#8a3d06", "#e89a4f", "#ffffff", "#6a9fd4", "#0d2f5c"])
SHADES = LinearSegmentedColormap.from_list("attention", ["#ffffff", "#d5e4f3", "#86b3dc", "#2f74b5", "#0d2f5c"])

# DejaVu comes with matplotlib; the others are tried where they are installed, for scripts that it lacks.
_WANTED_FONTS = (
    "DejaVu Sans",
    "Noto Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans Arabic",
    "Arial Unicode MS",
)
_CONTROL = {ord("\n"): "␤", ord("\r"): "␍", ord("\t"): "␉", ord(" "): "␣"}
# inches a piece: for a sentence, for a long one, and the most that a picture may measure
_CELL, _SMALL_CELL, _LONGEST_SIDE = 0.36, 0.16, 40.0


def draw_attention(attention: AttentionMap, png: Path) -> None:
    """One attention: the mean of its heads large, with pieces as labels, and every head small beside it."""
    heads, queries, keys = attention.weights.shape
    rows = min(heads, 4)
    columns = ceil(heads / rows)
    longest = max(queries, keys)
    cell = _CELL if longest <= 40 else min(_SMALL_CELL, _LONGEST_SIDE / longest)
    width, height = max(2.6, cell * keys), max(3.4, cell * queries)
    small = height / rows
    figure = _figure(width + columns * small * 0.92 + 2.6, height + 2.1)
    outer = figure.add_gridspec(1, 2, width_ratios=(width, columns * small * 0.92), wspace=0.08)
    main = figure.add_subplot(outer[0])
    top = max(float(attention.mean.max()), 1e-6)
    image = main.imshow(attention.mean, cmap=SHADES, vmin=0, vmax=top, aspect="auto", interpolation="nearest")
    _label(main, attention)
    grid = outer[1].subgridspec(rows, columns, hspace=0.06, wspace=0.06)
    for head in range(heads):
        panel = figure.add_subplot(grid[head % rows, head // rows])
        weights = attention.weights[head]
        panel.imshow(
            weights, cmap=SHADES, vmin=0, vmax=max(float(weights.max()), 1e-6), aspect="auto", interpolation="nearest"
        )
        panel.set_title(f"head {head + 1}", fontsize=8, color=QUIET, pad=3)
        panel.set_xticks([])
        panel.set_yticks([])
        _frame(panel)
    bar = figure.colorbar(image, ax=main, orientation="horizontal", fraction=0.04, pad=0.03, aspect=40)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, colors=QUIET, length=0)
    bar.set_label("attention weight, mean of the heads (each row sums to 1)", fontsize=8, color=QUIET)
    figure.suptitle(_title(attention.name), fontsize=12, color=INK, x=0.02, ha="left")
    _save(figure, png)


def draw_matrices(
    matrices: Mapping[str, np.ndarray], png: Path, title: str, axes_labels: tuple[str, str], bar_label: str
) -> None:
    """Heat maps of equal shape side by side, named by their keys, with one scale for all, on which 0 is white.

    axes_labels: of columns and of rows; bar_label: what the numbers are.
    """
    count = len(matrices)
    columns = min(count, 4)
    rows = ceil(count / columns)
    height, width = next(iter(matrices.values())).shape
    side = 5.0 if count == 1 else 2.6
    tall = side * min(max(height / width, 0.4), 2.5)
    figure = _figure(columns * side + 1.6, rows * tall + 1.3)
    most = max(max(float(np.abs(matrix).max()) for matrix in matrices.values()), 1e-6)
    signed = any(bool((matrix < 0).any()) for matrix in matrices.values())
    panels = []
    for place, (name, matrix) in enumerate(matrices.items()):
        panel = figure.add_subplot(rows, columns, place + 1)
        image = panel.imshow(
            matrix,
            cmap=SIGNED if signed else SHADES,
            vmin=-most if signed else 0,
            vmax=most,
            aspect="auto",
            interpolation="nearest",
        )
        panel.set_title(name, fontsize=9, color=QUIET, pad=4)
        panel.set_xlabel(axes_labels[0], fontsize=9, color=QUIET)
        panel.set_ylabel(axes_labels[1], fontsize=9, color=QUIET)
        panel.label_outer()
        panel.tick_params(labelsize=8, colors=QUIET, length=0)
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_locator(MaxNLocator(6, integer=True))
        _frame(panel)
        panels.append(panel)
    bar = figure.colorbar(image, ax=panels, fraction=0.04, pad=0.02, aspect=30)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, colors=QUIET, length=0)
    bar.set_label(bar_label, fontsize=9, color=QUIET)
    figure.suptitle(title, fontsize=12, color=INK, x=0.02, ha="left")
    _save(figure, png)


def draw_curves(log: Path, png: Path) -> None:
    """A run's `log.jsonl` as four panels over the step: loss, validation perplexity, validation BLEU, learning rate.

    Several validation sets have thin lines of their own beside their mean.
    """
    records = _read_log(log)
    figure = _figure(10.5, 6.6)
    loss, perplexity, bleu, rate = (figure.add_subplot(2, 2, place) for place in range(1, 5))

    steps, values = _series(records, "loss")
    _line(loss, steps, values, BLUE, "training", alpha=0.28 if len(steps) > 20 else 1.0)
    if len(steps) > 20:
        _line(loss, steps, _smooth(values), BLUE, "training, moving mean (dropout, smoothed labels)")
    valid_steps, valid = _series(records, "valid_loss")
    _line(loss, valid_steps, valid, ORANGE, "validation", marker="o")
    _finish(loss, "Loss", "nats a target token")
    if len(values) or len(valid):
        loss.legend(frameon=False, fontsize=8, labelcolor=INK)
        # the first steps are far above everything that is worth seeing
        tail = np.concatenate([values[len(values) // 20 :], valid])
        if len(tail) > 5:
            low, high = float(tail.min()), float(np.percentile(tail, 99))
            loss.set_ylim(low - 0.06 * (high - low + 0.1), high + 0.06 * (high - low + 0.1))

    steps, values = _series(records, "valid_perplexity")
    _line(perplexity, steps, values, ORANGE, "validation", marker="o")
    _sets(perplexity, records, "perplexity")
    if len(values) and values.min() > 0 and values.max() / values.min() > 20:
        perplexity.set_yscale("log")
    best = _best(perplexity, steps, values, int(values.argmin()) if len(values) else 0, "{:.2f}")
    _finish(perplexity, f"Validation perplexity{best}", "a target token")

    steps, values = _series(records, "valid_bleu")
    _line(bleu, steps, values, ORANGE, "validation", marker="o")
    _sets(bleu, records, "bleu")
    best = _best(bleu, steps, values, int(values.argmax()) if len(values) else 0, "{:.1f}")
    _finish(bleu, f"Validation BLEU{best}", "points")

    steps, values = _series(records, "learning_rate")
    _line(rate, steps, values, BLUE, "learning rate")
    rate.ticklabel_format(axis="y", style="sci", scilimits=(-2, 2), useMathText=True)
    rate.yaxis.get_offset_text().set_fontsize(8)
    _finish(rate, "Learning rate", "")
    figure.suptitle(_progress(records), fontsize=9, color=QUIET, x=0.02, ha="left")
    _save(figure, png)


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), dpi=140, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _save(figure: Figure, png: Path) -> None:
    installed = set(font_manager.get_font_names())
    fonts = [font for font in _WANTED_FONTS if font in installed]
    for text in figure.findobj(Text):
        text.set_fontfamily(fonts)
    buffer = BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        figure.savefig(buffer, format="png")
    atomic_write(png, buffer.getvalue())


def _frame(axes: Axes) -> None:
    for spine in axes.spines.values():
        spine.set_color(GRID)
        spine.set_linewidth(0.8)


def _title(name: str) -> str:
    parts = name.split(".")
    kind = {"cross_attention": "attention over the source", "self_attention": "self-attention"}.get(
        parts[-1], parts[-1]
    )
    layer = f", layer {int(parts[-2]) + 1}" if len(parts) > 1 and parts[-2].isdigit() else ""
    return f"{parts[0].capitalize()}{layer}: {kind}"


def _label(axes: Axes, attention: AttentionMap) -> None:
    axes.xaxis.tick_top()
    longest = max(len(attention.keys), len(attention.queries))
    every = ceil(_SMALL_CELL * longest / _LONGEST_SIDE)  # beyond 250 pieces not every one has room for its label
    axes.set_xticks(range(0, len(attention.keys), every))
    axes.set_yticks(range(0, len(attention.queries), every))
    size = 10 if longest <= 40 else 7
    shown = [
        [label.translate(_CONTROL)[:24] for label in labels[::every]] for labels in (attention.keys, attention.queries)
    ]
    axes.set_xticklabels(shown[0], rotation=50, ha="left", rotation_mode="anchor", fontsize=size, color=INK)
    axes.set_yticklabels(shown[1], fontsize=size, color=INK)
    for text in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        text.set_parse_math(False)
    if longest <= 40:
        axes.set_xticks(np.arange(len(attention.keys) + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(len(attention.queries) + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=0.8)
    axes.tick_params(which="both", length=0)
    _frame(axes)


def _read_log(log: Path) -> list[dict[str, Any]]:
    """The records by step; of a step logged twice (after a resume) the later one; a torn last line is left out."""
    records: dict[tuple[float, bool], dict[str, Any]] = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and isinstance(record.get("step"), int | float):
            records[record["step"], "valid_loss" in record] = record
    return [records[key] for key in sorted(records)]


def _series(records: Sequence[dict[str, Any]], key: str) -> tuple[np.ndarray, np.ndarray]:
    points = [(r["step"], r[key]) for r in records if isinstance(r.get(key), int | float) and isfinite(r[key])]
    table = np.array(points, dtype=np.float64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _smooth(values: np.ndarray) -> np.ndarray:
    """An exponential mean over about a hundredth of the run, without the bias to its start."""
    keep = 1 - 1 / max(4.0, len(values) / 100)
    total, weight, smoothed = 0.0, 0.0, np.empty_like(values)
    for place, value in enumerate(values):
        total, weight = keep * total + float(value), keep * weight + 1
        smoothed[place] = total / weight
    return smoothed


def _line(
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
            marker=marker,
            markersize=3.5,
        )


def _sets(axes: Axes, records: Sequence[dict[str, Any]], key: str) -> None:
    """A line for each validation set, where there are several."""
    judged = [record for record in records if isinstance(record.get("valid_sets"), dict)]
    names = list(dict.fromkeys(name for record in judged for name in record["valid_sets"]))
    # one validation is a point, which only a marker shows
    for name, (style, marker) in zip(names, cycle((("--", "v"), (":", "s"), ("-.", "^"))), strict=False):
        points = [(each["step"], each["valid_sets"][name][key]) for each in judged if name in each["valid_sets"]]
        # a label that begins with _ would be left out of the legend
        label = name.lstrip("_")
        axes.plot(*zip(*points, strict=True), style, color=QUIET, linewidth=1, marker=marker, markersize=3, label=label)
    if names:
        axes.get_lines()[0].set_label("mean")
        for text in axes.legend(frameon=False, fontsize=8, labelcolor=INK).get_texts():
            text.set_parse_math(False)


def _best(axes: Axes, steps: np.ndarray, values: np.ndarray, place: int, form: str) -> str:
    """Ring the best point; what the title says of it."""
    if not len(values):
        axes.text(0.5, 0.5, "no validation yet", transform=axes.transAxes, ha="center", color=QUIET, fontsize=9)
        return ""
    axes.plot(steps[place], values[place], marker="o", markersize=8, markerfacecolor="none", markeredgecolor=INK)
    return f" · best {form.format(values[place])} at step {steps[place]:,.0f}"


def _finish(axes: Axes, title: str, unit: str) -> None:
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


def _progress(records: Sequence[dict[str, Any]]) -> str:
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
