"""Layout of pictures whose rows and columns are labelled with tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, cos, radians, sin
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from dragoman.inspect.pictures.figure import GRID, INK, QUIET, new_figure, text_width
from dragoman.text.pieces import readable

_LARGEST_CELL, _SMALLEST_CELL = 0.36, 0.125
"""Inches per token in short texts, and the minimum in long texts, below which labels would be too small."""

_PANEL = 3.6
"""Side of a panel in inches, within the limits above."""

_LONGEST_SIDE = 40.0
"""Maximum size of a picture in inches. Beyond it, cells shrink and only every second, third … token is labelled."""

_GAP, _HEADING, _TITLE, _BAR = 0.25, 0.42, 0.6, 0.85
"""Inches between panels, for the heading of each, for the title, and for the colour bar below."""

_TURN = 60.0
"""Rotation of column labels in degrees."""

_LONGEST_NAME = 24
_MEASURED = 8
"""Number of labels, the longest in characters, whose widths are measured."""
_LINED = 40
"""Maximum number of tokens for which white lines separate the cells."""


Beyond = Literal["max", "both"] | None
"""The ends of a colour scale that some values exceed."""


@dataclass(frozen=True)
class Names:
    """Labels of every n-th token, with a size in points. length: inches of the longest label."""

    texts: tuple[str, ...]
    every: int
    points: float
    length: float

    @classmethod
    def of(cls, tokens: Sequence[str], cell: float) -> "Names":
        """Return as many labels as fit with `cell` inches per token."""
        every = max(1, ceil(_SMALLEST_CELL / cell - 1e-6))
        points = min(9.0, round(52 * cell * every, 1))
        texts = tuple(_short(token) for token in tokens[::every])
        longest = sorted(texts, key=len)[-_MEASURED:]
        return cls(texts, every, points, max(text_width(text, points) for text in longest) + 0.08)


@dataclass(frozen=True)
class Sheet:
    """A grid of panels with the same queries and keys. cell: inches per token; named: whether tokens are labelled."""

    rows: int
    columns: int
    queries: Sequence[str]
    keys: Sequence[str]
    cell: float
    named: bool = True

    @classmethod
    def fitting(cls, rows: int, columns: int, queries: Sequence[str], keys: Sequence[str]) -> "Sheet":
        """Return a sheet with labels whose cells are as large as the maximum size allows."""
        longest = max(len(queries), len(keys))
        cell = min(_LARGEST_CELL, max(_SMALLEST_CELL, _PANEL / longest))
        sheet = cls(rows, columns, queries, keys, cell)
        across = ((_LONGEST_SIDE - sheet.left) / columns - sheet.left) / len(keys)
        down = ((_LONGEST_SIDE - _TITLE - _BAR) / rows - sheet.above) / len(queries)
        return cls(rows, columns, queries, keys, min(cell, across, down))

    @classmethod
    def small(cls, rows: int, columns: int, queries: Sequence[str], keys: Sequence[str], side: float) -> "Sheet":
        """Return a sheet whose panels are at most `side` inches wide and high, with labels if they fit."""
        longest = max(len(queries), len(keys))
        cell = min(side / longest, _LARGEST_CELL)
        return cls(rows, columns, queries, keys, cell, named=cell >= _SMALLEST_CELL)

    @cached_property
    def row_labels(self) -> Names:
        """The labels to the left of a panel."""
        return Names.of(self.queries, self.cell)

    @cached_property
    def column_labels(self) -> Names:
        """The labels above a panel."""
        return Names.of(self.keys, self.cell)

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
        """Inches to the left of a panel, for its labels and the slanted labels of its neighbour."""
        if not self.named:
            return _GAP
        return max(self.row_labels.length, self.column_labels.length * cos(radians(_TURN))) + _GAP

    @property
    def above(self) -> float:
        """Inches above a panel, for its heading and column labels."""
        names = self.column_labels.length * sin(radians(_TURN)) + 0.08 if self.named else 0.0
        return names + _HEADING

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the sheet in inches."""
        across = self.columns * (self.left + self.width) + max(self.left - _GAP, _GAP)
        return max(across, 5.6), _TITLE + self.rows * (self.above + self.height) + _BAR

    def begin(self, title: str) -> tuple[Figure, Axes]:
        """Return an empty figure, and axes over all of it in inches from the upper left corner."""
        across, down = self.size
        figure = new_figure(across, down, layout=None)
        figure.suppressComposite = True  # each panel stays a separate image, sharp at any size of an SVG
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.text(_GAP, _TITLE / 2, title, fontsize=12, color=INK, va="center")
        return figure, axes

    def panel(self, axes: Axes, row: int, column: int, heading: str, weights: np.ndarray, **colours: Any) -> AxesImage:
        """Draw a heat map of weights (T, S) with a heading and labels. colours: keyword arguments of `Axes.imshow`."""
        x = self.left + column * (self.left + self.width)
        y = _TITLE + row * (self.above + self.height) + self.above
        right, bottom = x + self.width, y + self.height
        extent = (x, right, bottom, y)
        image = axes.imshow(weights, extent=extent, aspect="auto", interpolation="none", **colours)
        axes.text(x, y - self.above + _HEADING * 0.7, heading, fontsize=9, color=QUIET, va="center")
        axes.add_patch(Rectangle((x, y), self.width, self.height, fill=False, edgecolor=GRID, linewidth=0.8))
        if self.named:
            self._name(axes, x, y)
        if self.named and max(weights.shape) <= _LINED:
            lines = axes.hlines(np.linspace(y, bottom, len(self.queries) + 1)[1:-1], x, right)
            columns = axes.vlines(np.linspace(x, right, len(self.keys) + 1)[1:-1], y, bottom)
            for each in (lines, columns):
                each.set(color="white", linewidth=0.6)
        return image

    def end(self, figure: Figure, axes: Axes, image: AxesImage, label: str, beyond: Beyond) -> None:
        """Draw the colour bar of all panels. beyond: the ends of the scale that some weights exceed."""
        across, down = self.size
        axes.set(xlim=(0, across), ylim=(down, 0))
        box = (_GAP / across, (_BAR - 0.25) / down, min(4.0, across - 2 * _GAP) / across, 0.12 / down)
        bar = figure.colorbar(image, cax=figure.add_axes(box), orientation="horizontal", extend=beyond)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=8, colors=QUIET, length=0)
        bar.set_label(label, fontsize=8, color=QUIET)

    def _name(self, axes: Axes, x: float, y: float) -> None:
        """Write labels beside and above a panel; drawing them as ticks would take several times as long."""
        down, across = self.height / len(self.queries), self.width / len(self.keys)
        rows, columns = self.row_labels, self.column_labels
        for index, text in enumerate(rows.texts):
            middle = y + (index * rows.every + 0.5) * down
            written = axes.text(x - 0.05, middle, text, ha="right", va="center", fontsize=rows.points, color=INK)
            written.set_parse_math(False)
        for index, text in enumerate(columns.texts):
            middle = x + (index * columns.every + 0.5) * across
            written = axes.text(middle, y - 0.06, text, ha="left", va="center", fontsize=columns.points, color=INK)
            written.set(rotation=_TURN, rotation_mode="anchor", parse_math=False)


def _short(token: str) -> str:
    shown = readable(token.encode())
    return shown if len(shown) <= _LONGEST_NAME else shown[: _LONGEST_NAME - 1] + "…"
