"""Heat maps of arbitrary matrices as a PNG file."""

from collections.abc import Mapping
from math import ceil
from pathlib import Path

import numpy as np
from matplotlib.ticker import MaxNLocator

from dragoman.inspect.pictures.figure import INK, QUIET, SHADES, SIGNED, draw_frame, new_figure, save


def draw_matrices(
    matrices: Mapping[str, np.ndarray], png: Path, title: str, axes_labels: tuple[str, str], bar_label: str
) -> None:
    """Draw matrices of equal shape side by side, with their keys as titles and a common colour scale where 0 is white.

    axes_labels: labels of the horizontal and the vertical axis. bar_label: label of the colour bar.
    """
    count = len(matrices)
    columns = min(count, 4)
    rows = ceil(count / columns)
    height, width = next(iter(matrices.values())).shape
    side = 5.0 if count == 1 else 2.6
    panel_height = side * min(max(height / width, 0.4), 2.5)
    figure = new_figure(columns * side + 1.6, rows * panel_height + 1.3)
    limit = max(max(float(np.abs(matrix).max()) for matrix in matrices.values()), 1e-6)
    is_signed = any(bool((matrix < 0).any()) for matrix in matrices.values())
    panels = []
    for index, (name, matrix) in enumerate(matrices.items()):
        panel = figure.add_subplot(rows, columns, index + 1)
        image = panel.imshow(
            matrix,
            cmap=SIGNED if is_signed else SHADES,
            vmin=-limit if is_signed else 0,
            vmax=limit,
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
        draw_frame(panel)
        panels.append(panel)
    bar = figure.colorbar(image, ax=panels, fraction=0.04, pad=0.02, aspect=30)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, colors=QUIET, length=0)
    bar.set_label(bar_label, fontsize=9, color=QUIET)
    figure.suptitle(title, fontsize=12, color=INK, x=0.02, ha="left")
    save(figure, png)
