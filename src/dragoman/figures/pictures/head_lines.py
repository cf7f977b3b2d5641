"""Tokens in two columns with lines between them, one colour and kind of dash per head."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from dragoman.figures.pictures.figure import DASHES, new_figure, shorten_token, text_width
from dragoman.figures.style import COLOURS, INK, QUIET

_ROW, _SPAN, _POINTS = 0.27, 3.2, 9.0
"""Distance of tokens, distance of the columns in inches, and font size."""

_TITLE, _MARGIN, _LEGEND = 0.7, 0.3, 0.25
_MAX_HEIGHT = 40.0
"""Maximum height of a picture in inches; in longer texts, the letters are smaller."""

_SPREAD = 0.5
"""Distance of the lines of the first and the last head between the same tokens, as a share of a row."""

_THICKEST = 5.0
"""Width in points of the line of the weight 1; half of it if there are several heads."""


def draw_head_lines(
    title: str,
    labels: tuple[Sequence[str], Sequence[str]],
    headings: Sequence[str],
    lines: Sequence[tuple[int, int, int, float]],
    query: int | None,
) -> Figure:
    """Draw lines between the tokens of the left and of the right column.

    labels: the tokens of both columns. headings: name of each head. lines: head, token on the left, token on the right,
    and weight. query: the only token on the left with lines, while the others are grey; None: all.

    The lines of different heads between the same tokens are side by side.
    """
    left, right = ([shorten_token(each) for each in side] for side in labels)
    count = max(len(left), len(right))
    thickest = _THICKEST if len(headings) == 1 else _THICKEST / 2
    row = min(_ROW, (_MAX_HEIGHT - _TITLE - _LEGEND * (len(headings) + 1)) / count)
    points = _POINTS * row / _ROW
    start = _MARGIN + max(text_width(each, points) for each in left) + 0.1
    end = start + _SPAN
    width = max(end + 0.1 + max(text_width(each, points) for each in right) + _MARGIN, 6.5)
    bottom = _TITLE + count * row
    height = bottom + _LEGEND * (len(headings) + 1)
    figure = new_figure(width, height, layout=None)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.text(_MARGIN, _TITLE / 2, title, fontsize=12, color=INK, va="center", parse_math=False)
    shared: dict[str, Any] = {"fontsize": points, "va": "center", "parse_math": False}
    for number, token in enumerate(left):
        ink = QUIET if query not in (None, number) else INK
        axes.text(start - 0.08, _middle(number, row), token, color=ink, ha="right", **shared)
    for number, token in enumerate(right):
        axes.text(end + 0.08, _middle(number, row), token, color=INK, **shared)
    for head, first, second, weight in sorted(lines, key=lambda line: -line[3]):  # thin lines on top
        shift = row * _SPREAD * ((head + 0.5) / len(headings) - 0.5)
        axes.plot(
            [start, end],
            [_middle(first, row) + shift, _middle(second, row) + shift],
            color=COLOURS[head % len(COLOURS)],
            linestyle=DASHES[head % len(DASHES)],
            linewidth=max(0.5, thickest * weight),
            alpha=0.25 + 0.75 * min(1.0, weight),
            solid_capstyle="butt",
            dash_capstyle="butt",
        )
    for number, heading in enumerate(headings):
        middle = bottom + _LEGEND * (number + 0.8)
        axes.plot(
            [_MARGIN, _MARGIN + 0.5],
            [middle, middle],
            color=COLOURS[number % len(COLOURS)],
            linestyle=DASHES[number % len(DASHES)],
            linewidth=2,
        )
        axes.text(_MARGIN + 0.6, middle, heading, fontsize=8, color=INK, va="center", parse_math=False)
    return figure


def _middle(number: int, row: float) -> float:
    return _TITLE + (number + 0.5) * row
