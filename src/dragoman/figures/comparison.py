"""`Comparison`: two translations of a sentence, with their differences, their scores and their links to the source."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dragoman.figures.canvas import DASHES, axes_in_inches, draw_title
from dragoman.figures.figure import Figure
from dragoman.figures.style import COLOURS, INK, QUIET
from dragoman.figures.text_layout import minus_sign, shorten_token, text_width
from dragoman.metrics.alignment_error_rate import Link
from dragoman.text.words import Difference

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes

_ROW, _SPAN, _POINTS, _SMALL = 0.3, 1.6, 9.0, 8.0
"""Distance of words, distance of the columns in inches, and font sizes."""

_TITLE, _HEADING, _MARGIN, _SCORE, _NOTE = 0.6, 0.35, 0.3, 0.24, 0.35
_MAX_HEIGHT = 40.0
"""Maximum height of the words in inches; in longer texts, the letters are smaller."""

_GAP = 0.12
"""Space between a word and the ends of its lines."""

_ALIGNMENTS = ("right", "center", "left")
"""Alignment of the words in the three columns."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparison(Figure):
    """Two translations of a sentence.

    names: of the two models. source, translations: the words. links: the links (source word, target word) of each
    translation, from 0. differences: the words that the translations do not share. scores: two values per metric, one
    for each model.
    """

    kind: ClassVar[str] = "comparison"

    names: tuple[str, str]
    source: tuple[str, ...]
    translations: tuple[tuple[str, ...], tuple[str, ...]]
    links: tuple[Collection[Link], Collection[Link]]
    differences: tuple[Difference, ...]
    scores: Mapping[str, tuple[float, float]]

    @property
    def different(self) -> tuple[frozenset[int], frozenset[int]]:
        """The words of each translation that the other one does not have at this point."""
        first = frozenset(word for each in self.differences for word in range(each.start, each.end))
        second = frozenset(word for each in self.differences for word in range(each.other_start, each.other_end))
        return first, second

    def details(self) -> dict[str, Any]:
        """Return the names, the words, and the names of the scores; the links are `links-0` and `links-1`."""
        return {
            "names": list(self.names),
            "source": list(self.source),
            "translations": [list(each) for each in self.translations],
            "metrics": list(self.scores),
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the links (N, 2), the differences (D, 4) as in `Difference`, and the scores (metrics, 2)."""
        links = [np.array(sorted(each), np.int32).reshape(-1, 2) for each in self.links]
        return {
            "links-0": links[0],
            "links-1": links[1],
            "differences": np.array(self.differences, np.int32).reshape(-1, 4),
            "scores": np.array(list(self.scores.values()), np.float64).reshape(-1, 2),
        }

    def table(self) -> Iterator[Sequence[Any]]:
        """Yield one row per word of the translations, with its position from 1 and the linked source words."""
        yield "model", "position", "word", "differs", "source words"
        for name, words, links, different in zip(
            self.names, self.translations, self.links, self.different, strict=True
        ):
            for position, word in enumerate(words):
                linked = " ".join(self.source[i] for i, j in sorted(links) if j == position)
                yield name, position + 1, word, "yes" if position in different else "no", linked

    def draw(self) -> "matplotlib.figure.Figure":
        """Draw the source between the translations, with lines between linked words and boxes around differences."""
        columns = (self.translations[0], self.source, self.translations[1])
        words = [[shorten_token(each) for each in column] for column in columns]
        count = max(map(len, words))
        row = min(_ROW, _MAX_HEIGHT / max(count, 1))
        points = _POINTS * row / _ROW
        headings = (self.names[0], "source", self.names[1])
        widths = [
            max(text_width(heading, _POINTS), *(text_width(each, points) for each in column), 0.3)
            for heading, column in zip(headings, words, strict=True)
        ]
        edges = []
        x = _MARGIN
        for width in widths:
            edges.append((x, x + width))
            x += width + 2 * _GAP + _SPAN
        start = _MARGIN + max((text_width(each, _SMALL) for each in self.scores), default=0.0)
        rights = [start + 0.3 + max(0.6, text_width(self.names[0], _SMALL))]
        rights.append(rights[0] + 0.3 + max(0.6, text_width(self.names[1], _SMALL)))
        full = max(edges[2][1] + _MARGIN, rights[1] + _MARGIN, text_width(self.title, 12) + 2 * _MARGIN)
        top = _TITLE + _HEADING
        bottom = top + count * row
        height = bottom + 2 * _NOTE + _SCORE * (len(self.scores) + 1)
        figure, axes = axes_in_inches(full, height)
        draw_title(axes, self.title, _MARGIN, _TITLE / 2)
        for side, column in ((0, 0), (1, 2)):
            outer, inner = (edges[0][1], edges[1][0]) if column == 0 else (edges[2][0], edges[1][1])
            gap = _GAP if column == 0 else -_GAP
            for source, target in sorted(self.links[side]):
                ends = [top + (target + 0.5) * row, top + (source + 0.5) * row]
                style = {"color": COLOURS[side], "linestyle": DASHES[side]}
                axes.plot([outer + gap, inner - gap], ends, linewidth=1.4, **style)
        positions = (edges[0][1], sum(edges[1]) / 2, edges[2][0])
        boxed = (self.different[0], (), self.different[1])
        for heading, column_words, x, align, marked in zip(headings, words, positions, _ALIGNMENTS, boxed, strict=True):
            shared: dict[str, Any] = {"ha": align, "va": "center", "parse_math": False}
            axes.text(x, _TITLE + _HEADING / 2, heading, fontsize=_POINTS, color=QUIET, **shared)
            for number, word in enumerate(column_words):
                y = top + (number + 0.5) * row
                axes.text(x, y, word, fontsize=points, color=INK, **shared)
                if number in marked:
                    width = text_width(word, points)
                    _draw_box(axes, x - width if align == "right" else x, y, width, row)
        _draw_scores(axes, self.names, self.scores, rights, bottom + _NOTE)
        return figure


def _draw_box(axes: "Axes", left: float, y: float, width: float, row: float) -> None:
    """Draw a box around a word. y: the middle of the word."""
    from matplotlib.patches import FancyBboxPatch

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
    axes: "Axes", names: tuple[str, str], scores: Mapping[str, tuple[float, float]], rights: Sequence[float], top: float
) -> None:
    """Draw what a box means, and a row per metric. rights: the right ends of the two columns of values."""
    shared: dict[str, Any] = {"va": "center", "parse_math": False, "fontsize": _SMALL}
    axes.text(_MARGIN, top, "box: a word that differs", color=QUIET, **shared)
    rows = {"": names, **{each: tuple(minus_sign(f"{value:.3f}") for value in scores[each]) for each in scores}}
    for number, (metric, values) in enumerate(rows.items()):
        y = top + _NOTE + _SCORE * number
        axes.text(_MARGIN, y, metric, color=QUIET, **shared)
        for right, value in zip(rights, values, strict=True):
            axes.text(right, y, value, color=INK if metric else QUIET, ha="right", **shared)
