"""Heat maps of matrices with numbered rows and columns."""

from collections.abc import Mapping
from math import ceil
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dragoman.figures.pictures.figure import SHADES, SIGNED, draw_frame, new_figure
from dragoman.figures.style import INK, QUIET


def draw_matrices(
    title: str,
    matrices: Mapping[str, NDArray[Any]],
    axes: tuple[str, str],
    scale: tuple[float, float],
    unit: str,
) -> Figure:
    """Draw matrices of equal shape side by side, with their keys as titles and a common colour scale where 0 is white.

    axes: names of the vertical and of the horizontal axis. scale: first and last value of
    the colour scale. unit: label of the colour bar.
    """
    count = len(matrices)
    columns = min(count, 4)
    rows = ceil(count / columns)
    height, width = next(iter(matrices.values())).shape
    side = 5.0 if count == 1 else 2.6
    panel_height = side * min(max(height / width, 0.4), 2.5)
    figure = new_figure(columns * side + 1.6, rows * panel_height + 1.3)
    panels = []
    for index, (name, matrix) in enumerate(matrices.items()):
        panel = figure.add_subplot(rows, columns, index + 1)
        image = panel.imshow(
            matrix,
            cmap=SIGNED if scale[0] < 0 else SHADES,
            vmin=scale[0],
            vmax=scale[1],
            aspect="auto",
            interpolation="nearest",
        )
        panel.set_title(name, fontsize=9, color=QUIET, pad=4)
        panel.set_xlabel(axes[1], fontsize=9, color=QUIET)
        panel.set_ylabel(axes[0], fontsize=9, color=QUIET)
        panel.label_outer()
        panel.tick_params(labelsize=8, colors=QUIET, length=0)
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_locator(MaxNLocator(6, integer=True))
        draw_frame(panel)
        panels.append(panel)
    bar = figure.colorbar(image, ax=panels, fraction=0.04, pad=0.02, aspect=30)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, colors=QUIET, length=0)
    bar.set_label(unit, fontsize=9, color=QUIET)
    figure.suptitle(title, fontsize=12, color=INK, x=0.02, ha="left")
    return figure
