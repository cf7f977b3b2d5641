"""`Bars`: the largest values of a distribution as bars, with the sum of the rest."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dragoman.figures.canvas import axes_in_inches, draw_title
from dragoman.figures.figure import Figure
from dragoman.figures.style import BLUE, GRID, INK, ORANGE, QUIET
from dragoman.figures.text_layout import minus_sign, shorten_token, text_width

if TYPE_CHECKING:
    import matplotlib.figure

_WIDTH, _ROW, _TITLE, _AXIS, _MARGIN = 4.0, 0.26, 0.6, 0.5, 0.25
"""Length of the longest bar, distance of bars, height of the title and of the axis, and margin, in inches."""

_POINTS = 9.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Bars(Figure):
    """Labelled bars, from top to bottom.

    labels, values: one per bar. rest: the sum of the values that are not shown, in a bar of its own; None if all are
    shown. unit: name of the horizontal axis, such as "probability". marked: numbers of the bars to emphasise, from 0,
    such as that of the token that was chosen.
    """

    kind: ClassVar[str] = "bars"

    labels: tuple[str, ...]
    values: tuple[float, ...]
    rest: float | None = None
    unit: str = "probability"
    marked: tuple[int, ...] = ()

    def details(self) -> dict[str, Any]:
        """Return the labels, the sum of the rest, and the emphasised bars."""
        return {"labels": list(self.labels), "rest": self.rest, "unit": self.unit, "marked": list(self.marked)}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the values (N,) as `values`."""
        return {"values": np.array(self.values, np.float64)}

    def table(self) -> Iterator[Sequence[Any]]:
        """Yield one row per bar, and one for the rest."""
        yield "label", self.unit
        yield from zip(self.labels, self.values, strict=True)
        if self.rest is not None:
            yield "(rest)", self.rest

    def draw(self) -> "matplotlib.figure.Figure":
        """Draw one bar below the other, with its value beside it; the rest is hatched.

        Marked bars are orange, and their values have an arrow.
        """
        names = [shorten_token(label) for label in self.labels]
        lengths = [*self.values, *(() if self.rest is None else (self.rest,))]
        names += [] if self.rest is None else ["all others"]
        left = _MARGIN + max((text_width(name, _POINTS) for name in names), default=0.0) + 0.1
        width, height = left + _WIDTH + 0.9, _TITLE + len(names) * _ROW + _AXIS
        figure, axes = axes_in_inches(max(width, 5.6), height)
        draw_title(axes, self.title, _MARGIN, _TITLE / 2)
        largest = max(map(abs, lengths), default=0.0) or 1.0
        for number, (name, value) in enumerate(zip(names, lengths, strict=True)):
            is_rest, middle = number == len(self.values), _TITLE + (number + 0.5) * _ROW
            length = _WIDTH * abs(value) / largest
            style: dict[str, Any] = {"color": ORANGE if number in self.marked or value < 0 else BLUE}
            if is_rest:
                style = {"facecolor": "white", "edgecolor": QUIET, "hatch": "////", "linewidth": 0.6}
            axes.barh(middle, length, height=0.72 * _ROW, left=left, **style)
            ink = QUIET if is_rest else INK
            axes.text(left - 0.08, middle, name, fontsize=_POINTS, color=ink, ha="right", va="center", parse_math=False)
            shown = f"{_number(value)} ◂" if number in self.marked else _number(value)
            axes.text(left + length + 0.06, middle, shown, fontsize=8, color=QUIET, va="center")
        bottom = _TITLE + len(names) * _ROW
        axes.plot([left, left], [_TITLE, bottom], color=GRID, linewidth=1)
        axes.text(left, bottom + 0.22, self.unit, fontsize=8, color=QUIET, va="center", parse_math=False)
        return figure


def largest_probabilities(
    probabilities: NDArray[np.floating],
    label: Callable[[int], str],
    count: int,
    *,
    title: str,
    caption: str,
    chosen: int | None = None,
    slide: str = "",
) -> Bars:
    """Return the bars of the most probable ids, the most probable first, and of the rest.

    probabilities: (V,), which sum to 1. label: the label of an id. count: number of bars. chosen: an id to emphasise;
    if it is not among the most probable, its bar follows them.
    """
    values = probabilities.astype(np.float64)
    shown = np.argsort(-values, kind="stable")[:count].tolist()
    if chosen is not None and chosen not in shown:
        shown.append(chosen)
    others = np.delete(values, shown)
    return Bars(
        title=title,
        caption=caption,
        slide=slide,
        labels=tuple(map(label, shown)),
        values=tuple(values[shown].tolist()),
        rest=float(others.sum()) if others.size else None,
        marked=() if chosen is None else (shown.index(chosen),),
    )


def _number(value: float) -> str:
    return minus_sign(f"{value:.4f}" if abs(value) >= 1e-4 or value == 0 else f"{value:.1e}")
