"""The relevance of words: a text whose words are shaded by signed values, with the numbers below."""

from collections.abc import Iterator, Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.figures.canvas import axes_in_inches, colour_map, draw_title, save
from dragoman.figures.style import GRID, INK, QUIET, SIGNED
from dragoman.figures.text_layout import minus_sign, shorten_text, text_width, word_lines
from dragoman.models.relevance import Relevance, RelevantText

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _MARGIN = 9.0, 0.3
"""Width of the picture and of its margins in inches."""

_WORD_POINTS, _VALUE_POINTS = 11.0, 6.5
_WORD_HEIGHT, _LINE_HEIGHT, _GAP = 0.26, 0.52, 0.06
"""Height of a word's box, distance of two lines, and space between two boxes, in inches."""

_TITLE, _HEADING, _LEGEND = 0.6, 0.3, 0.8
"""Height of the title, of a text's name, and of the legend, in inches."""

_TITLES = {"gradient × input": "Relevance for", "erasure": "Effect of each word on"}

_TICKS = (-1, -0.5, 0, 0.5, 1)
"""Ticks of the legend, as fractions of the largest value."""

_MAX_LENGTH = 40
"""Maximum number of characters of a word."""

_DARK = 0.6
"""Absolute value, as a fraction of the largest, above which the text of a word is white."""


def draw_relevance(relevance: Relevance, *files: Path) -> None:
    """Draw the words of all texts in lines, with signed shades, their values, and a legend.

    files: output files; the format is PNG or SVG, according to the suffix.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    lines = [list(_lines(text)) for text in relevance.texts]
    headings = sum(bool(text.name) for text in relevance.texts)
    height = _TITLE + headings * _HEADING + sum(map(len, lines)) * _LINE_HEIGHT + _LEGEND
    figure, axes = axes_in_inches(_WIDTH, height)
    title = " ".join(
        f"{_TITLES[relevance.method]} the {relevance.output} = {minus_sign(f'{relevance.value:.3f}')}".split()
    )
    draw_title(axes, shorten_text(title, 110), _MARGIN, _TITLE / 2)
    known = [abs(value) for text in relevance.texts for value in text.values if not isnan(value)]
    limit = max(known, default=0.0) or 1.0
    top = _TITLE
    for text, rows in zip(relevance.texts, lines, strict=True):
        if text.name:
            axes.text(_MARGIN, top + _HEADING / 2, text.name, fontsize=9, color=QUIET, va="center")
            top += _HEADING
        for row in rows:
            _draw_line(axes, row, top, limit)
            top += _LINE_HEIGHT
    note = (
        "output minus the output for the text without the word" if relevance.method == "erasure" else _sums(relevance)
    )
    axes.text(_WIDTH - _MARGIN, height - 0.25, note, fontsize=8, color=QUIET, ha="right", va="center")
    box = (_MARGIN / _WIDTH, (_LEGEND - 0.3) / height, 3.4 / _WIDTH, 0.12 / height)
    scale = ScalarMappable(Normalize(-limit, limit), colour_map(SIGNED))
    bar = figure.colorbar(scale, cax=figure.add_axes(box), orientation="horizontal")
    bar.set_ticks([each * limit for each in _TICKS], labels=[minus_sign(f"{each * limit:.2g}") for each in _TICKS])
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, colors=QUIET, length=0)
    bar.set_label(f"{relevance.method}; orange lowers, blue raises the output", fontsize=8, color=QUIET)
    save(figure, *files)


def _sums(relevance: Relevance) -> str:
    words, symbols = f"{relevance.total - relevance.symbols:+.3f}", f"{relevance.symbols:+.3f}"
    return f"sum of the words {minus_sign(words)}, special symbols {minus_sign(symbols)}"


def _lines(text: RelevantText) -> Iterator[list[tuple[str, float, float]]]:
    """Yield the words of each line with their values and widths in inches."""
    return word_lines(text.words, text.values, _word_width, limit=_WIDTH - 2 * _MARGIN, gap=_GAP, length=_MAX_LENGTH)


def _word_width(word: str, value: float) -> float:
    return max(text_width(word, _WORD_POINTS) + 0.1, text_width(_number(value), _VALUE_POINTS) + 0.04)


def _draw_line(axes: "Axes", line: Sequence[tuple[str, float, float]], top: float, limit: float) -> None:
    from matplotlib.patches import Rectangle

    x, colours = _MARGIN, colour_map(SIGNED)
    for word, value, width in line:
        fraction = 0.0 if isnan(value) else value / limit
        colour = colours((fraction + 1) / 2)
        axes.add_patch(Rectangle((x, top), width, _WORD_HEIGHT, facecolor=colour, edgecolor=GRID, linewidth=0.6))
        middle = x + width / 2
        ink = "white" if abs(fraction) > _DARK else INK
        style: dict[str, Any] = {"ha": "center", "va": "center", "parse_math": False}
        axes.text(middle, top + _WORD_HEIGHT / 2, word, fontsize=_WORD_POINTS, color=ink, **style)
        axes.text(middle, top + _WORD_HEIGHT + 0.09, _number(value), fontsize=_VALUE_POINTS, color=QUIET, **style)
        x += width + _GAP


def _number(value: float) -> str:
    if isnan(value):
        return "–"
    return minus_sign(f"{value:+.2f}") if abs(value) >= 0.005 else "0"
