"""`Bars`: the largest values of a distribution as bars, with the sum of the rest."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dragoman.figures.figure import Figure

if TYPE_CHECKING:
    import matplotlib.figure


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
        """Draw one bar below the other, with its value beside it."""
        from dragoman.figures.pictures.bars import draw_bars

        return draw_bars(self.title, self.labels, self.values, self.rest, self.unit, self.marked)


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
