"""`Matrices`: heat maps of matrices whose rows and columns are numbered, such as position vectors."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dragoman.figures.canvas import colour_map, draw_frame, new_figure
from dragoman.figures.figure import Figure
from dragoman.figures.style import INK, QUIET, SHADES, SIGNED

if TYPE_CHECKING:
    import matplotlib.figure


@dataclass(frozen=True, eq=False, kw_only=True)
class Matrices(Figure):
    """Matrices of equal shape (N, M) by heading, with a common colour scale in which the value 0 is white.

    axes: names of the vertical and of the horizontal axis. unit: describes a value.
    """

    kind: ClassVar[str] = "matrices"

    matrices: Mapping[str, NDArray[Any]]
    axes: tuple[str, str]
    unit: str

    @cached_property
    def limit(self) -> float:
        """The value at which the colour scale ends: the largest magnitude."""
        return max(max(float(np.abs(matrix).max()) for matrix in self.matrices.values()), 1e-6)

    @cached_property
    def is_signed(self) -> bool:
        """Whether there are negative values."""
        return any(bool((matrix < 0).any()) for matrix in self.matrices.values())

    def details(self) -> dict[str, Any]:
        """Return headings, names of the axes, unit, and scale."""
        return {
            "headings": list(self.matrices),
            "axes": list(self.axes),
            "unit": self.unit,
            "signed": self.is_signed,
            "limit": self.limit,
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the matrices by `matrix-0` and so on, in the order of the headings."""
        return {f"matrix-{number}": matrix for number, matrix in enumerate(self.matrices.values())}

    def table(self) -> Iterator[Sequence[Any]]:
        """Yield one row per value."""
        yield "matrix", *self.axes, self.unit
        for heading, matrix in self.matrices.items():
            for row, values in enumerate(matrix.tolist()):
                for column, value in enumerate(values):
                    yield heading, row, column, value

    def draw(self) -> "matplotlib.figure.Figure":
        """Draw the matrices side by side, with their headings as titles."""
        from matplotlib.ticker import MaxNLocator

        count = len(self.matrices)
        columns = min(count, 4)
        rows = ceil(count / columns)
        height, width = next(iter(self.matrices.values())).shape
        side = 5.0 if count == 1 else 2.6
        panel_height = side * min(max(height / width, 0.4), 2.5)
        figure = new_figure(columns * side + 1.6, rows * panel_height + 1.3)
        panels = []
        for index, (name, matrix) in enumerate(self.matrices.items()):
            panel = figure.add_subplot(rows, columns, index + 1)
            image = panel.imshow(
                matrix,
                cmap=colour_map(SIGNED if self.is_signed else SHADES),
                vmin=-self.limit if self.is_signed else 0.0,
                vmax=self.limit,
                aspect="auto",
                interpolation="nearest",
            )
            panel.set_title(name, fontsize=9, color=QUIET, pad=4)
            panel.set_xlabel(self.axes[1], fontsize=9, color=QUIET)
            panel.set_ylabel(self.axes[0], fontsize=9, color=QUIET)
            panel.label_outer()
            panel.tick_params(labelsize=8, colors=QUIET, length=0)
            for axis in (panel.xaxis, panel.yaxis):
                axis.set_major_locator(MaxNLocator(6, integer=True))
            draw_frame(panel)
            panels.append(panel)
        bar = figure.colorbar(image, ax=panels, fraction=0.04, pad=0.02, aspect=30)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=8, colors=QUIET, length=0)
        bar.set_label(self.unit, fontsize=9, color=QUIET)
        figure.suptitle(self.title, fontsize=12, color=INK, x=0.02, ha="left")
        return figure
