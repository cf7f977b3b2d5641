"""`Matrices`: heat maps of matrices whose rows and columns are numbered, such as position vectors."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from numpy.typing import NDArray

from dragoman.inspect.figures.figure import Figure

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

    def details(self) -> dict[str, Any]:
        """Return headings, names of the axes, and unit."""
        return {"headings": list(self.matrices), "axes": list(self.axes), "unit": self.unit}

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
        from dragoman.inspect.pictures.matrices import draw_matrices

        return draw_matrices(self.title, self.matrices, self.axes, self.unit)
