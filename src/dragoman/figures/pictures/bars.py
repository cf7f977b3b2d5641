"""Labelled bars, one below the other, with their values."""

from collections.abc import Collection, Sequence
from typing import Any

from matplotlib.figure import Figure

from dragoman.figures.pictures.figure import minus_sign, new_figure, shorten_token, text_width
from dragoman.figures.style import BLUE, GRID, INK, ORANGE, QUIET

_WIDTH, _ROW, _TITLE, _AXIS, _MARGIN = 4.0, 0.26, 0.6, 0.5, 0.25
"""Length of the longest bar, distance of bars, height of the title and of the axis, and margin, in inches."""

_POINTS = 9.0


def draw_bars(
    title: str,
    labels: Sequence[str],
    values: Sequence[float],
    rest: float | None,
    unit: str,
    marked: Collection[int],
) -> Figure:
    """Draw a bar per label, and a hatched bar for the rest. Marked bars are orange, and their values have an arrow."""
    names = [shorten_token(label) for label in labels]
    lengths = [*values, *(() if rest is None else (rest,))]
    names += [] if rest is None else ["all others"]
    left = _MARGIN + max((text_width(name, _POINTS) for name in names), default=0.0) + 0.1
    width, height = left + _WIDTH + 0.9, _TITLE + len(names) * _ROW + _AXIS
    figure = new_figure(max(width, 5.6), height, layout=None)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set(xlim=(0, max(width, 5.6)), ylim=(height, 0))
    axes.text(_MARGIN, _TITLE / 2, title, fontsize=12, color=INK, va="center", parse_math=False)
    largest = max(map(abs, lengths), default=0.0) or 1.0
    for number, (name, value) in enumerate(zip(names, lengths, strict=True)):
        is_rest, middle = number == len(values), _TITLE + (number + 0.5) * _ROW
        length = _WIDTH * abs(value) / largest
        style: dict[str, Any] = {"color": ORANGE if number in marked or value < 0 else BLUE}
        if is_rest:
            style = {"facecolor": "white", "edgecolor": QUIET, "hatch": "////", "linewidth": 0.6}
        axes.barh(middle, length, height=0.72 * _ROW, left=left, **style)
        ink = QUIET if is_rest else INK
        axes.text(left - 0.08, middle, name, fontsize=_POINTS, color=ink, ha="right", va="center", parse_math=False)
        shown = f"{_number(value)} ◂" if number in marked else _number(value)
        axes.text(left + length + 0.06, middle, shown, fontsize=8, color=QUIET, va="center")
    bottom = _TITLE + len(names) * _ROW
    axes.plot([left, left], [_TITLE, bottom], color=GRID, linewidth=1)
    axes.text(left, bottom + 0.22, unit, fontsize=8, color=QUIET, va="center", parse_math=False)
    return figure


def _number(value: float) -> str:
    return minus_sign(f"{value:.4f}" if abs(value) >= 1e-4 or value == 0 else f"{value:.1e}")
