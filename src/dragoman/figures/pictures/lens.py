"""A table of tokens whose cells are shaded by probabilities, the highest layer on top."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from dragoman.figures.pictures.figure import SHADES, new_figure, shorten_token, text_width
from dragoman.figures.style import INK, QUIET

_ROW, _POINTS, _SMALL = 0.42, 8.0, 6.0
_TITLE, _MARGIN, _NOTE = 0.6, 0.25, 0.45
_MAX_WIDTH = 60.0
"""Maximum width of a picture in inches; the letters of longer texts are smaller."""
_DARK = 0.6
_LABEL = 14
"""Maximum number of characters of a token."""


def draw_lens(
    title: str,
    labels: tuple[Sequence[str], Sequence[str]],
    tokens: Sequence[Sequence[str]],
    probabilities: NDArray[Any],
) -> Figure:
    """Draw tokens with their probabilities.

    labels: of the L layers, the lowest first, and of the T columns. tokens: L rows of T. probabilities: (L, T).
    """
    layers, columns = labels
    cells = [[shorten_token(each, _LABEL) for each in row] for row in tokens]
    heads = [shorten_token(each, _LABEL) for each in columns]
    cell = max(text_width(each, _POINTS) for row in [*cells, heads] for each in row) + 0.16
    left = _MARGIN + max(text_width(each, _POINTS) for each in layers) + 0.1
    scale = min(1.0, (_MAX_WIDTH - left - _MARGIN) / (cell * len(columns)))
    cell *= scale
    width = max(left + cell * len(columns) + _MARGIN, 6.0)
    height = _TITLE + _ROW * (len(layers) + 1) + _NOTE
    figure = new_figure(width, height, layout=None)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.text(_MARGIN, _TITLE / 2, title, fontsize=12, color=INK, va="center", parse_math=False)
    shared: dict[str, Any] = {"ha": "center", "va": "center", "parse_math": False}
    for row, (layer, shown, values) in enumerate(
        zip(reversed(layers), reversed(cells), probabilities[::-1].tolist(), strict=True)
    ):
        top = _TITLE + row * _ROW
        axes.text(left - 0.08, top + _ROW / 2, layer, fontsize=_POINTS, color=QUIET, ha="right", va="center")
        for column, (token, value) in enumerate(zip(shown, values, strict=True)):
            x = left + column * cell
            axes.add_patch(Rectangle((x, top), cell, _ROW, facecolor=SHADES(value), edgecolor="white", linewidth=1))
            ink = "white" if value > _DARK else INK
            axes.text(x + cell / 2, top + 0.38 * _ROW, token, fontsize=_POINTS * scale, color=ink, **shared)
            axes.text(x + cell / 2, top + 0.78 * _ROW, f"{value:.2f}", fontsize=_SMALL * scale, color=ink, **shared)
    bottom = _TITLE + len(layers) * _ROW
    for column, head in enumerate(heads):
        style = {**shared, "fontsize": _POINTS * scale, "color": INK}
        axes.text(left + (column + 0.5) * cell, bottom + _ROW / 2, head, **style)
    note = "shade and number: probability of the token; bottom row: the token that follows in the text"
    axes.text(_MARGIN, height - _NOTE / 2, note, fontsize=8, color=QUIET, va="center")
    return figure
