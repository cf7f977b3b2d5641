"""Word alignments of a sentence pair: a grid of words with one mark per link and aligner."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from dragoman.figures.pictures.figure import GREYS
from dragoman.figures.pictures.sheet import Sheet
from dragoman.figures.style import COLOURS, GRID, INK
from dragoman.metrics.alignment_error_rate import GoldLinks, Link

_SHAPES = ("o", "s", "D", "^", "v", "P")
"""Shapes of marks, so that aligners can be distinguished without colours."""
_POSSIBLE, _SURE = 0.35, 0.8
"""Shades of the annotated links."""
_GOLD = "grey cells: annotated links, light if only possible"
_LEGEND_LINE = 0.24
"""Height of a line of the legend in inches."""


def draw_alignments(
    title: str,
    words: tuple[Sequence[str], Sequence[str]],
    layers: Sequence[tuple[str, Collection[Link]] | None],
    gold: GoldLinks | None,
) -> Figure:
    """Draw the links of several aligners over each other.

    words: of the source (rows) and of the target (columns). layers: the label in the legend and the links of each
    aligner, or None for one that is not drawn; the others look the same with and without it. The marks of later
    aligners are smaller, so that marks in the same cell remain visible. gold: annotated links, in grey.
    """
    source, target = words
    shown = [(number, *layer) for number, layer in enumerate(layers) if layer is not None]
    lines = len(shown) + (gold is not None)
    sheet = Sheet.with_labels(1, 1, source, target, below=_LEGEND_LINE * lines + 0.3)
    figure, axes = sheet.begin(title)
    shades = np.zeros((len(source), len(target)))
    if gold is not None:
        for share, annotated in ((_POSSIBLE, gold.possible), (_SURE, gold.sure)):
            for i, j in annotated:
                shades[i, j] = share
    sheet.panel(axes, 0, 0, "", shades, cmap=GREYS, vmin=0, vmax=1)
    left, top = sheet.corner
    right, bottom = left + sheet.width, top + sheet.height
    horizontal = axes.hlines(np.linspace(top, bottom, len(source) + 1)[1:-1], left, right)
    vertical = axes.vlines(np.linspace(left, right, len(target) + 1)[1:-1], top, bottom)
    for rulings in (horizontal, vertical):
        rulings.set(color=GRID, linewidth=0.6)
    legend = sheet.size[1] - _LEGEND_LINE * lines - 0.1
    for line, (number, label, links) in enumerate(shown):
        size = 0.82 * (1 - number / (len(layers) + 1)) * min(sheet.cell_size)
        style: dict[str, Any] = {
            "marker": _SHAPES[number % len(_SHAPES)],
            "markersize": 72 * size,
            "markerfacecolor": "none" if number < len(layers) - 1 else COLOURS[number % len(COLOURS)],
            "markeredgecolor": COLOURS[number % len(COLOURS)],
            "markeredgewidth": min(1.6, 12 * size),
            "linestyle": "",
        }
        places = np.array(sorted(links), np.float64).reshape(-1, 2) + 0.5
        width, height = sheet.cell_size
        axes.plot(left + places[:, 1] * width, top + places[:, 0] * height, **style)
        middle = legend + _LEGEND_LINE * (line + 0.5)
        axes.plot([0.4], [middle], **{**style, "markersize": 8.0, "markeredgewidth": 1.6})
        axes.text(0.6, middle, label, fontsize=9, color=INK, va="center", parse_math=False)
    if gold is not None:
        middle = legend + _LEGEND_LINE * (len(shown) + 0.5)
        axes.text(0.25, middle, _GOLD, fontsize=9, color=INK, va="center")
    sheet.end(axes)
    return figure
