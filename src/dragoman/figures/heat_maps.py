"""`HeatMaps`: panels whose rows and columns are labelled with tokens, such as the heads of a layer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dragoman.figures.figure import Figure

if TYPE_CHECKING:
    import matplotlib.figure

_SCALE_QUANTILE = 0.995
"""Quantile of the magnitudes at which the colour scale ends. Larger values have the colour of the scale's end."""


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
        """Return labels, scale, and for each panel its heading and its place in the arrays."""
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
        from dragoman.figures.pictures.heat_maps import draw_heat_maps

        panels = [[(each.heading, each.values) for each in row] for row in self.grid]
        scale = (-self.limit if self.is_signed else 0.0, self.limit)
        return draw_heat_maps(self.title, panels, (self.rows, self.columns), scale, self.unit, self.compact)


def _name(row: int) -> str:
    return f"row-{row}"
