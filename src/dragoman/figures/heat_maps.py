"""`HeatMaps`: panels whose rows and columns are labelled with tokens, such as the heads of a layer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dragoman.figures.canvas import colour_map
from dragoman.figures.figure import Figure
from dragoman.figures.style import SHADES, SIGNED
from dragoman.figures.token_grid import ExtendedEnds, TokenGrid

if TYPE_CHECKING:
    import matplotlib.figure

_SCALE_QUANTILE = 0.995
"""Quantile of the magnitudes at which the colour scale ends. Larger values have the colour of the scale's end."""

_COMPACT_PANEL = 1.9
"""Side of a panel in inches in pictures of all layers and heads."""


@dataclass(frozen=True, eq=False)
class HeatMap:
    """A panel. values: (T, S). layer, head: numbers from 1; None if the panel is not a single layer, or head."""

    heading: str
    values: NDArray[Any]
    layer: int | None = None
    head: int | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class HeatMaps(Figure):
    """Panels with a common colour scale, in which the value 0 is white.

    rows, columns: labels of the T rows and S columns of every panel. grid: the panels, row by row. unit: describes a
    value, for the colour bar; empty for panels without a colour bar. compact: whether panels are small, and labelled
    only if the labels fit. full_scale: whether the colour scale ends at the largest value, and not at the 99.5%
    quantile.
    """

    kind: ClassVar[str] = "heat-maps"

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    grid: tuple[tuple[HeatMap, ...], ...]
    unit: str
    compact: bool = False
    full_scale: bool = False

    @cached_property
    def limit(self) -> float:
        """The value at which the colour scale ends. Small values would be pale if it ended at a rare large value."""
        magnitudes = np.concatenate([np.abs(each.values).ravel() for row in self.grid for each in row])
        if not magnitudes.any():
            return 1.0
        return float(magnitudes.max() if self.full_scale else np.quantile(magnitudes[magnitudes > 0], _SCALE_QUANTILE))

    @cached_property
    def is_signed(self) -> bool:
        """Whether there are negative values."""
        return any(bool((each.values < 0).any()) for row in self.grid for each in row)

    def details(self) -> dict[str, Any]:
        """Return labels, scale, and for each panel its heading and its position in the arrays."""
        return {
            "rows": list(self.rows),
            "columns": list(self.columns),
            "unit": self.unit,
            "compact": self.compact,
            "signed": self.is_signed,
            "limit": self.limit,
            "grid": [
                [
                    {"heading": each.heading, "layer": each.layer, "head": each.head, "array": _name(n), "index": index}
                    for index, each in enumerate(row)
                ]
                for n, row in enumerate(self.grid)
            ],
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return one array (panels, T, S) per row of panels, `row-0` first."""
        return {_name(n): np.stack([each.values for each in row]) for n, row in enumerate(self.grid)}

    def table(self) -> Iterator[Sequence[Any]]:
        """Yield one row per cell of each panel."""
        yield "panel", "row", "column", "row token", "column token", "value"
        for panel in (panel for row in self.grid for panel in row):
            values = panel.values.tolist()
            for row, query in enumerate(self.rows):
                for column, key in enumerate(self.columns):
                    yield panel.heading, row, column, query, key, values[row][column]

    def draw(self) -> "matplotlib.figure.Figure":
        """Draw all panels with the same colour scale."""
        low, high = -self.limit if self.is_signed else 0.0, self.limit
        height, width = len(self.grid), max(map(len, self.grid))
        grid = (
            TokenGrid.overview(height, width, self.rows, self.columns, _COMPACT_PANEL)
            if self.compact
            else TokenGrid.with_labels(height, width, self.rows, self.columns)
        )
        figure, axes = grid.begin(self.title)
        colours = colour_map(SIGNED if self.is_signed else SHADES)
        for row, panels in enumerate(self.grid):
            for column, each in enumerate(panels):
                image = grid.panel(axes, row, column, each.heading, each.values, cmap=colours, vmin=low, vmax=high)
        grid.end(axes)
        if self.unit:
            largest = max(float(np.abs(each.values).max()) for panels in self.grid for each in panels)
            extend: ExtendedEnds = None if largest <= high else "both" if self.is_signed else "max"
            grid.colour_bar(figure, image, self.unit, extend)
        return figure


def _name(row: int) -> str:
    return f"row-{row}"
