"""`Curve`: a line, which can be thinned without losing its extremes. `CurvePanel`: lines with common axes."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Style = Literal["line", "faint", "points", "part"]
"""A line; a faint line without an entry in the legend; a line with a point at each value; a thin grey line with points,
for a part of a mean."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A line. x, y: (N,), x in rising order. colour: number of a colour; curves of one run have the same colour."""

    label: str
    x: Floats
    y: Floats
    colour: int = 0
    style: Style = "line"

    def thinned(self, pixels: int) -> "Curve":
        """Return the curve with at most four points per pixel column, in order: first, smallest, largest and last.

        A picture that is `pixels` wide is the same with these points, and no extreme value is lost.
        """
        if len(self.x) <= 4 * pixels:
            return self
        kept = thinned_positions(self.x, self.y, pixels)
        return replace(self, x=self.x[kept], y=self.y[kept])


@dataclass(frozen=True, eq=False)
class CurvePanel:
    """Curves with common axes.

    unit: label of the vertical axis. is_logarithmic: scale of the vertical axis. limits: its ends; None: from the
    values. best: the point (x, y) to mark, or None. note: text in a panel without curves.
    """

    heading: str
    unit: str
    curves: tuple[Curve, ...]
    is_logarithmic: bool = False
    limits: tuple[float, float] | None = None
    best: tuple[float, float] | None = None
    note: str = ""


def thinned_positions(x: Floats, y: Floats, pixels: int) -> NDArray[np.int64]:
    """Return the positions of the first, smallest, largest and last value in each of `pixels` columns, in order.

    x: (N,) in rising order. y: (N,) finite.
    """
    span = x[-1] - x[0]
    columns = (
        np.minimum(((x - x[0]) / span * pixels).astype(np.int64), pixels - 1)
        if span > 0
        else np.zeros(len(x), np.int64)
    )
    starts = np.flatnonzero(np.diff(columns, prepend=-1))
    ends = np.append(starts[1:], len(x)) - 1
    order = np.lexsort((y, columns))  # the values of each column in rising order
    return np.unique(np.concatenate([starts, ends, order[starts], order[ends]]))
