"""A matrix of counts with labelled rows and columns."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dragoman.figures.pictures.figure import SHADES, draw_frame, new_figure
from dragoman.figures.style import INK, QUIET

_MAX_NUMBERED = 30
"""Number of rows or columns up to which the cells contain their counts."""
_DARK = 0.5


def draw_confusion(
    title: str, counts: NDArray[np.int64], labels: tuple[Sequence[str], Sequence[str]], axes: tuple[str, str]
) -> Figure:
    """Draw counts (N, M), in which the colour of a cell is its share of the row.

    labels, axes: labels and names of the rows and of the columns.
    """
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    height, width = (1.8 + 0.42 * size for size in counts.shape)
    figure = new_figure(width + 1.2, height + 0.4)
    panel = figure.add_subplot()
    panel.imshow(shares, cmap=SHADES, vmin=0, vmax=1, interpolation="nearest")
    panel.set_xticks(range(counts.shape[1]), labels[1], rotation=90, fontsize=8, parse_math=False)
    panel.set_yticks(range(counts.shape[0]), labels[0], fontsize=8, parse_math=False)
    panel.tick_params(colors=QUIET, length=0)
    panel.set_xlabel(axes[1], fontsize=9, color=QUIET)
    panel.set_ylabel(axes[0], fontsize=9, color=QUIET)
    if max(counts.shape) <= _MAX_NUMBERED:
        for (row, column), count in np.ndenumerate(counts):
            colour = "white" if shares[row, column] > _DARK else INK
            panel.text(column, row, f"{count:,}", ha="center", va="center", fontsize=8, color=colour)
    draw_frame(panel)
    figure.suptitle(title, fontsize=12, color=INK, x=0.02, ha="left")
    return figure
