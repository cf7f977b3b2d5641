"""Two translations beside their source, with lines between linked words, boxes around differences, and scores."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from dragoman.figures.pictures.figure import DASHES, minus_sign, new_figure, shorten_token, text_width
from dragoman.figures.style import COLOURS, INK, QUIET
from dragoman.metrics.alignment_error_rate import Link

_ROW, _SPAN, _POINTS, _SMALL = 0.3, 1.6, 9.0, 8.0
"""Distance of words, distance of the columns in inches, and font sizes."""

_TITLE, _HEADING, _MARGIN, _SCORE, _NOTE = 0.6, 0.35, 0.3, 0.24, 0.35
_MAX_HEIGHT = 40.0
"""Maximum height of the words in inches; in longer texts, the letters are smaller."""

_GAP = 0.12
"""Space between a word and the ends of its lines."""

_ALIGNMENTS = ("right", "center", "left")
"""Alignment of the words in the three columns."""


def draw_comparison(
    title: str,
    names: tuple[str, str],
    columns: tuple[Sequence[str], Sequence[str], Sequence[str]],
    links: tuple[Collection[Link], Collection[Link]],
    different: tuple[Collection[int], Collection[int]],
    scores: Mapping[str, tuple[float, float]],
) -> Figure:
    """Draw three columns of words: the first translation, the source and the second translation.

    names: of the models. links: (source word, target word) of each translation. different: the words of each
    translation that are in a box. scores: the values of both models by measure, below the words.
    """
    words = [[shorten_token(each) for each in column] for column in columns]
    count = max(map(len, words))
    row = min(_ROW, _MAX_HEIGHT / max(count, 1))
    points = _POINTS * row / _ROW
    headings = (names[0], "source", names[1])
    widths = [
        max(text_width(heading, _POINTS), *(text_width(each, points) for each in column), 0.3)
        for heading, column in zip(headings, words, strict=True)
    ]
    edges = []
    x = _MARGIN
    for width in widths:
        edges.append((x, x + width))
        x += width + 2 * _GAP + _SPAN
    start = _MARGIN + max((text_width(each, _SMALL) for each in scores), default=0.0)
    rights = [start + 0.3 + max(0.6, text_width(names[0], _SMALL))]
    rights.append(rights[0] + 0.3 + max(0.6, text_width(names[1], _SMALL)))
    full = max(edges[2][1] + _MARGIN, rights[1] + _MARGIN, text_width(title, 12) + 2 * _MARGIN)
    top = _TITLE + _HEADING
    bottom = top + count * row
    height = bottom + 2 * _NOTE + _SCORE * (len(scores) + 1)
    figure = new_figure(full, height, layout=None)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set(xlim=(0, full), ylim=(height, 0))
    axes.text(_MARGIN, _TITLE / 2, title, fontsize=12, color=INK, va="center", parse_math=False)
    for side, column in ((0, 0), (1, 2)):
        outer, inner = (edges[0][1], edges[1][0]) if column == 0 else (edges[2][0], edges[1][1])
        gap = _GAP if column == 0 else -_GAP
        for source, target in sorted(links[side]):
            ends = [top + (target + 0.5) * row, top + (source + 0.5) * row]
            style = {"color": COLOURS[side], "linestyle": DASHES[side]}
            axes.plot([outer + gap, inner - gap], ends, linewidth=1.4, **style)
    places = (edges[0][1], sum(edges[1]) / 2, edges[2][0])
    boxed = (different[0], (), different[1])
    for heading, column_words, x, align, marked in zip(headings, words, places, _ALIGNMENTS, boxed, strict=True):
        shared: dict[str, Any] = {"ha": align, "va": "center", "parse_math": False}
        axes.text(x, _TITLE + _HEADING / 2, heading, fontsize=_POINTS, color=QUIET, **shared)
        for number, word in enumerate(column_words):
            y = top + (number + 0.5) * row
            axes.text(x, y, word, fontsize=points, color=INK, **shared)
            if number in marked:
                width = text_width(word, points)
                _draw_box(axes, x - width if align == "right" else x, y, width, row)
    _draw_scores(axes, names, scores, rights, bottom + _NOTE)
    return figure


def _draw_box(axes: Axes, left: float, y: float, width: float, row: float) -> None:
    """Draw a box around a word. y: the middle of the word."""
    height = 0.74 * row
    box = FancyBboxPatch(
        (left - 0.03, y - height / 2),
        width + 0.06,
        height,
        boxstyle="round,pad=0,rounding_size=0.05",
        facecolor="none",
        edgecolor=INK,
        linewidth=0.9,
    )
    axes.add_patch(box)


def _draw_scores(
    axes: Axes, names: tuple[str, str], scores: Mapping[str, tuple[float, float]], rights: Sequence[float], top: float
) -> None:
    """Draw what a box means, and a row per measure. rights: the right ends of the two columns of values."""
    shared: dict[str, Any] = {"va": "center", "parse_math": False, "fontsize": _SMALL}
    axes.text(_MARGIN, top, "box: a word that differs", color=QUIET, **shared)
    rows = {"": names, **{each: tuple(minus_sign(f"{value:.3f}") for value in scores[each]) for each in scores}}
    for number, (measure, values) in enumerate(rows.items()):
        y = top + _NOTE + _SCORE * number
        axes.text(_MARGIN, y, measure, color=QUIET, **shared)
        for right, value in zip(rights, values, strict=True):
            axes.text(right, y, value, color=INK if measure else QUIET, ha="right", **shared)
