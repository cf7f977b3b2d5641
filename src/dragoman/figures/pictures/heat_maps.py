"""Heat maps whose rows and columns are labelled with tokens."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dragoman.figures.pictures.figure import SHADES, SIGNED
from dragoman.figures.pictures.sheet import ExtendedEnds, Sheet

_COMPACT_PANEL = 1.9
"""Side of a panel in inches in pictures of all layers and heads."""


def draw_heat_maps(
    title: str,
    grid: Sequence[Sequence[tuple[str, NDArray[np.floating]]]],
    labels: tuple[Sequence[str], Sequence[str]],
    scale: tuple[float, float],
    unit: str,
    compact: bool,
) -> Figure:
    """Draw panels with the same colour scale.

    grid: the heading and the values (T, S) of each panel, row by row. labels: labels of the T rows and of the S
    columns. scale: the values of the lightest, or most negative, and of the darkest colour. unit: label of the colour
    bar; empty: no colour bar. compact: small panels, which are labelled only if the labels fit.
    """
    low, high = scale
    height, width = len(grid), max(map(len, grid))
    sheet = (
        Sheet.overview(height, width, *labels, _COMPACT_PANEL) if compact else Sheet.with_labels(height, width, *labels)
    )
    figure, axes = sheet.begin(title)
    for row, panels in enumerate(grid):
        for column, (heading, values) in enumerate(panels):
            colours = SIGNED if low < 0 else SHADES
            image = sheet.panel(axes, row, column, heading, values, cmap=colours, vmin=low, vmax=high)
    sheet.end(axes)
    if unit:
        largest = max(float(np.abs(values).max()) for panels in grid for _, values in panels)
        extend: ExtendedEnds = None if largest <= high else "both" if low < 0 else "max"
        sheet.colour_bar(figure, image, unit, extend)
    return figure
