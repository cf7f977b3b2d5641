"""Heat maps as PNG files: what an attention looks at, and any matrices."""

from collections.abc import Mapping
from math import ceil
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.ticker import MaxNLocator

from dragoman.inspect.attention import AttentionMap
from dragoman.inspect.pictures.figure import GRID, INK, QUIET, new_figure, save

SIGNED = LinearSegmentedColormap.from_list("signed", ["#8a3d06", "#e89a4f", "#ffffff", "#6a9fd4", "#0d2f5c"])
SHADES = LinearSegmentedColormap.from_list("attention", ["#ffffff", "#d5e4f3", "#86b3dc", "#2f74b5", "#0d2f5c"])


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
    figure = new_figure(width + columns * small * 0.92 + 2.6, height + 2.1)
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
    save(figure, png)


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
    figure = new_figure(columns * side + 1.6, rows * tall + 1.3)
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
    save(figure, png)


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
