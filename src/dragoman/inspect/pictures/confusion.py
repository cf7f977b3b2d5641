"""A confusion matrix as a PNG file."""

from pathlib import Path

import numpy as np

from dragoman.inspect.pictures.figure import INK, QUIET, SHADES, draw_frame, new_figure, save
from dragoman.metrics.labels.classification import ConfusionMatrix

_MAX_NUMBERED = 30
"""Number of classes up to which the cells contain their counts."""
_DARK = 0.5


def draw_confusion(matrix: ConfusionMatrix, png: Path, title: str = "Confusion matrix") -> None:
    """Draw the number of examples of each class (row) by predicted class (column).

    The colour of a cell is its share of the row, so that rare classes are as visible as frequent classes.
    """
    counts = np.asarray(matrix.counts)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    side = 1.8 + 0.42 * len(counts)
    figure = new_figure(side + 1.2, side + 0.4)
    panel = figure.add_subplot()
    panel.imshow(shares, cmap=SHADES, vmin=0, vmax=1, interpolation="nearest")
    places = range(len(counts))
    panel.set_xticks(places, matrix.labels, rotation=90, fontsize=8)
    panel.set_yticks(places, matrix.labels, fontsize=8)
    panel.tick_params(colors=QUIET, length=0)
    panel.set_xlabel("predicted", fontsize=9, color=QUIET)
    panel.set_ylabel("correct", fontsize=9, color=QUIET)
    if len(counts) <= _MAX_NUMBERED:
        for row in places:
            for column in places:
                colour = "white" if shares[row, column] > _DARK else INK
                panel.text(column, row, f"{counts[row, column]:,}", ha="center", va="center", fontsize=8, color=colour)
    draw_frame(panel)
    figure.suptitle(title, fontsize=12, color=INK, x=0.02, ha="left")
    save(figure, png)
