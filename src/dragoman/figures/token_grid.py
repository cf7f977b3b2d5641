"""Layout of heat maps whose rows and columns are labelled with tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, cos, radians, sin
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dragoman.figures.canvas import axes_in_inches
from dragoman.figures.style import GRID, INK, QUIET
from dragoman.figures.text_layout import shorten_token, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

_MAX_CELL, _MIN_CELL = 0.36, 0.125
"""Maximum and minimum size of a cell in inches. Labels would be too small for smaller cells."""

_PANEL = 3.6
"""Side of a panel in inches, if the cell size permits."""

_MAX_SIDE = 40.0
"""Maximum width and height of a picture in inches. In larger pictures, cells are smaller than the minimum, and only
every n-th token is labelled."""

_GAP, _HEADING, _TITLE, _BAR = 0.25, 0.42, 0.6, 0.85
"""Space in inches between panels, for the heading of a panel, for the title, and for the colour bar."""

_ROTATION = 60.0
"""Rotation of column labels in degrees."""

_MEASURED_LABELS = 8
"""Number of labels whose widths are measured. The labels with the most characters are selected."""
_MAX_GRID_TOKENS = 40
"""Maximum number of tokens for which white lines separate the cells."""


ExtendedEnds = Literal["max", "both"] | None
"""The ends of the colour scale that some values exceed."""


@dataclass(frozen=True)
class Labels:
    """Labels of every n-th token.

    texts: the labels. every: n. points: font size. length: width of the longest label in inches.
    """

    texts: tuple[str, ...]
    every: int
    points: float
    length: float

    @classmethod
    def from_tokens(cls, tokens: Sequence[str], cell: float) -> "Labels":
        """Return as many labels as fit. cell: size of a cell in inches."""
        every = max(1, ceil(_MIN_CELL / cell - 1e-6))
        points = min(9.0, round(52 * cell * every, 1))
        texts = tuple(shorten_token(token) for token in tokens[::every])
        longest = sorted(texts, key=len)[-_MEASURED_LABELS:]
        return cls(texts, every, points, max(text_width(text, points) for text in longest) + 0.08)


@dataclass(frozen=True)
class TokenGrid:
    """A grid of panels with the same queries and keys.

    rows, columns: number of panels. cell: size of a cell in inches. has_labels: whether tokens are labelled. below:
    space in inches below the panels, by default for a colour bar.
    """

    rows: int
    columns: int
    queries: Sequence[str]
    keys: Sequence[str]
    cell: float
    has_labels: bool = True
    below: float = _BAR

    @classmethod
    def with_labels(
        cls, rows: int, columns: int, queries: Sequence[str], keys: Sequence[str], below: float = _BAR
    ) -> "TokenGrid":
        """Return a grid with labels and the largest cells that the maximum picture size permits."""
        longest = max(len(queries), len(keys))
        cell = min(_MAX_CELL, max(_MIN_CELL, _PANEL / longest))
        grid = cls(rows, columns, queries, keys, cell)
        cell_width = ((_MAX_SIDE - grid.left) / columns - grid.left) / len(keys)
        cell_height = ((_MAX_SIDE - _TITLE - below) / rows - grid.above) / len(queries)
        return cls(rows, columns, queries, keys, min(cell, cell_width, cell_height), below=below)

    @classmethod
    def overview(cls, rows: int, columns: int, queries: Sequence[str], keys: Sequence[str], side: float) -> "TokenGrid":
        """Return a grid whose panels are at most `side` inches wide and high, with labels if they fit."""
        longest = max(len(queries), len(keys))
        cell = min(side / longest, _MAX_CELL)
        return cls(rows, columns, queries, keys, cell, has_labels=cell >= _MIN_CELL)

    @cached_property
    def row_labels(self) -> Labels:
        """The labels to the left of a panel."""
        return Labels.from_tokens(self.queries, self.cell)

    @cached_property
    def column_labels(self) -> Labels:
        """The labels above a panel."""
        return Labels.from_tokens(self.keys, self.cell)

    @property
    def width(self) -> float:
        """The width of a panel in inches."""
        return max(len(self.keys) * self.cell, 0.9)

    @property
    def height(self) -> float:
        """The height of a panel in inches."""
        return max(len(self.queries) * self.cell, 0.5)

    @property
    def left(self) -> float:
        """Space in inches to the left of a panel, for row labels and the slanted labels of the preceding panel."""
        if not self.has_labels:
            return _GAP
        return max(self.row_labels.length, self.column_labels.length * cos(radians(_ROTATION))) + _GAP

    @property
    def above(self) -> float:
        """Space in inches above a panel, for its heading and column labels."""
        labels = self.column_labels.length * sin(radians(_ROTATION)) + 0.08 if self.has_labels else 0.0
        return labels + _HEADING

    @property
    def size(self) -> tuple[float, float]:
        """The width and height of the picture in inches."""
        width = self.columns * (self.left + self.width) + max(self.left - _GAP, _GAP)
        return max(width, 5.6), _TITLE + self.rows * (self.above + self.height) + self.below

    @property
    def corner(self) -> tuple[float, float]:
        """The upper left corner of the first panel, in inches from that of the picture."""
        return self.left, _TITLE + self.above

    @property
    def cell_size(self) -> tuple[float, float]:
        """The width and height of a cell in inches, which exceed `cell` in very small panels."""
        return self.width / len(self.keys), self.height / len(self.queries)

    def begin(self, title: str) -> "tuple[Figure, Axes]":
        """Return an empty figure with a title, and axes in inches from the upper left corner of the figure."""
        figure, axes = axes_in_inches(*self.size)
        figure.suppressComposite = True  # keep each panel a separate image, which is sharp at any size of an SVG
        axes.text(_GAP, _TITLE / 2, title, fontsize=12, color=INK, va="center")
        return figure, axes

    def panel(
        self, axes: "Axes", row: int, column: int, heading: str, weights: np.ndarray, **colours: Any
    ) -> "AxesImage":
        """Draw a heat map of weights (T, S) with a heading and labels; returns the image.

        row, column: position of the panel in the grid. colours: keyword arguments of `Axes.imshow`.
        """
        from matplotlib.patches import Rectangle

        x, y = self.corner
        x, y = x + column * (self.left + self.width), y + row * (self.above + self.height)
        right, bottom = x + self.width, y + self.height
        extent = (x, right, bottom, y)
        image = axes.imshow(weights, extent=extent, aspect="auto", interpolation="none", **colours)
        axes.text(x, y - self.above + _HEADING * 0.7, heading, fontsize=9, color=QUIET, va="center")
        axes.add_patch(Rectangle((x, y), self.width, self.height, fill=False, edgecolor=GRID, linewidth=0.8))
        if self.has_labels:
            self._draw_labels(axes, x, y)
        if self.has_labels and max(weights.shape) <= _MAX_GRID_TOKENS:
            horizontal = axes.hlines(np.linspace(y, bottom, len(self.queries) + 1)[1:-1], x, right)
            vertical = axes.vlines(np.linspace(x, right, len(self.keys) + 1)[1:-1], y, bottom)
            for lines in (horizontal, vertical):
                lines.set(color="white", linewidth=0.6)
        return image

    def end(self, axes: "Axes") -> None:
        """Set the limits of the axes, after all panels have been drawn."""
        width, height = self.size
        axes.set(xlim=(0, width), ylim=(height, 0))

    def colour_bar(self, figure: "Figure", image: "AxesImage", label: str, extend: ExtendedEnds) -> None:
        """Draw the colour bar of all panels.

        image: one of the panels. label: label of the colour bar. extend: ends of the scale that some weights exceed.
        """
        width, height = self.size
        box = (_GAP / width, (_BAR - 0.25) / height, min(4.0, width - 2 * _GAP) / width, 0.12 / height)
        bar = figure.colorbar(image, cax=figure.add_axes(box), orientation="horizontal", extend=extend)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=8, colors=QUIET, length=0)
        bar.set_label(label, fontsize=8, color=QUIET)

    def _draw_labels(self, axes: "Axes", x: float, y: float) -> None:
        """Write labels to the left of a panel and above it. Tick labels would take several times as long to draw."""
        (cell_width, cell_height), rows, columns = self.cell_size, self.row_labels, self.column_labels
        for index, text in enumerate(rows.texts):
            middle = y + (index * rows.every + 0.5) * cell_height
            label = axes.text(x - 0.05, middle, text, ha="right", va="center", fontsize=rows.points, color=INK)
            label.set_parse_math(False)
        for index, text in enumerate(columns.texts):
            middle = x + (index * columns.every + 0.5) * cell_width
            label = axes.text(middle, y - 0.06, text, ha="left", va="center", fontsize=columns.points, color=INK)
            label.set(rotation=_ROTATION, rotation_mode="anchor", parse_math=False)
