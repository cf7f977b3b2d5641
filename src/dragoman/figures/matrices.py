"""`Matrices`: heat maps of matrices whose rows and columns are numbered, such as position vectors."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dragoman.figures.figure import Figure

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
        """Draw the matrices side by side."""
        from dragoman.figures.pictures.matrices import draw_matrices

        scale = (-self.limit if self.is_signed else 0.0, self.limit)
        return draw_matrices(self.title, self.matrices, self.axes, scale, self.unit)
