"""A document whose sentences and words are shaded by their attention weights (Yang et al. 2016, figure 5)."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.figures.canvas import axes_in_inches, colour_map, draw_title, save
from dragoman.figures.style import GRID, INK, ORANGE, QUIET, SHADES
from dragoman.figures.text_layout import shorten_text, text_width, word_lines
from dragoman.models.attention_weights import SentenceWeights

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _LEFT, _RIGHT = 10.0, 1.0, 0.3
"""Width of the picture, and of its margins, in inches."""

_POINTS, _LINE, _WORD, _GAP = 10.0, 0.32, 0.25, 0.05
"""Font size; distance of lines, height of a word's box, and space between boxes and sentences, in inches."""

_TITLE, _NOTE = 0.6, 0.4
_MAX_LENGTH = 40
"""Maximum number of characters of a word."""


def draw_document(label: str, sentences: Sequence[SentenceWeights], *files: Path) -> None:
    """Draw one sentence below the other, with its weight in a bar on the left. Blue words have large weights.

    The shade of a word is its weight in its sentence times the square root of the weight of the sentence, so that the
    words of unimportant sentences are pale (Yang et al. 2016, section 3.5). files: output files; the format is PNG or
    SVG, according to the suffix.
    """
    from matplotlib.patches import Rectangle

    lines = [list(_lines(each)) for each in sentences]
    height = _TITLE + _NOTE + sum(max(1, len(each)) * _LINE + _GAP for each in lines)
    figure, axes = axes_in_inches(_WIDTH, height)
    draw_title(axes, f"predicted: {shorten_text(label, _MAX_LENGTH)}", 0.3, _TITLE / 2)
    largest = max(each.weight for each in sentences)
    strongest = max((max(_shades(each), default=0.0) for each in sentences), default=0.0) or 1.0
    top = _TITLE
    for sentence, rows in zip(sentences, lines, strict=True):
        size = 0.5 * sentence.weight / largest
        axes.add_patch(Rectangle((_LEFT - 0.1 - size, top), size, _WORD, facecolor=ORANGE, edgecolor="none"))
        axes.text(0.05, top + _WORD / 2, f"{sentence.weight:.2f}", fontsize=8, color=QUIET, va="center")
        for row in rows or [[]]:
            _draw_line(axes, row, top, strongest)
            top += _LINE
        top += _GAP
    note = "left: weight of the sentence; words: weight in the sentence × √(weight of the sentence)"
    axes.text(_WIDTH - _RIGHT, height - _NOTE / 2, note, fontsize=8, color=QUIET, ha="right", va="center")
    save(figure, *files)


def _shades(sentence: SentenceWeights) -> list[float]:
    return [value * sentence.weight**0.5 for value in sentence.values]


def _lines(sentence: SentenceWeights) -> Iterator[list[tuple[str, float, float]]]:
    """Yield the words of each line with their shades and widths in inches."""
    limit = _WIDTH - _LEFT - _RIGHT
    return word_lines(sentence.words, _shades(sentence), _word_width, limit=limit, gap=_GAP, length=_MAX_LENGTH)


def _word_width(word: str, value: float) -> float:
    return text_width(word, _POINTS) + 0.08


def _draw_line(axes: "Axes", line: Sequence[tuple[str, float, float]], top: float, strongest: float) -> None:
    from matplotlib.patches import Rectangle

    x, shades = _LEFT, colour_map(SHADES)
    for word, value, width in line:
        fraction = value / strongest
        axes.add_patch(Rectangle((x, top), width, _WORD, facecolor=shades(fraction), edgecolor=GRID, linewidth=0.4))
        ink = "white" if fraction > 0.6 else INK
        middle = x + width / 2, top + _WORD / 2
        axes.text(*middle, word, fontsize=_POINTS, color=ink, ha="center", va="center", parse_math=False)
        x += width + _GAP
