"""`HeadLines`: the attention weights of heads as lines between tokens, one colour per head."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import ConfigError
from dragoman.figures.canvas import DASHES, axes_in_inches, draw_title
from dragoman.figures.figure import Figure
from dragoman.figures.heads import head_weights, layer_title
from dragoman.figures.style import COLOURS, INK, QUIET
from dragoman.figures.text_layout import shorten_token, text_width
from dragoman.models.attention_weights import AttentionMap

if TYPE_CHECKING:
    import matplotlib.figure

SMALLEST = 0.1
"""Weight below which a line is omitted."""

_ROW, _SPAN, _POINTS = 0.27, 3.2, 9.0
"""Distance of tokens, distance of the columns in inches, and font size."""

_TITLE, _MARGIN, _LEGEND = 0.7, 0.3, 0.25
_MAX_HEIGHT = 40.0
"""Maximum height of a picture in inches; in longer texts, the letters are smaller."""

_SPREAD = 0.5
"""Distance of the lines of the first and the last head between the same tokens, as a fraction of a row."""

_THICKEST = 5.0
"""Width in points of the line of the weight 1; half of it if there are several heads."""


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadLines(Figure):
    """Lines from the queries on the left to the keys on the right, whose width is the weight.

    rows, columns: labels of the T queries and S keys. headings: name of each head. weights: (heads, T, S). query: the
    only query with lines, from 0; None: all queries. smallest: weight below which a line is omitted.
    """

    kind: ClassVar[str] = "head-lines"

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    headings: tuple[str, ...]
    weights: NDArray[Any]
    query: int | None = None
    smallest: float = SMALLEST

    def lines(self) -> Iterator[tuple[int, int, int, float]]:
        """Yield the head, the query, the key and the weight of each line, from 0."""
        for head, query, key in np.argwhere(self.weights >= self.smallest).tolist():
            if self.query in (None, query):
                yield head, query, key, float(self.weights[head, query, key])

    def details(self) -> dict[str, Any]:
        """Return the labels, the names of the heads, and which weights have a line."""
        return {
            "rows": list(self.rows),
            "columns": list(self.columns),
            "headings": list(self.headings),
            "query": self.query,
            "smallest": self.smallest,
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the weights (heads, T, S), also those without a line, as `weights`."""
        return {"weights": self.weights}

    def table(self) -> Iterator[Sequence[Any]]:
        """Yield one row per line."""
        yield "head", "row", "column", "row token", "column token", "value"
        for head, query, key, weight in self.lines():
            yield self.headings[head], query, key, self.rows[query], self.columns[key], weight

    def draw(self) -> "matplotlib.figure.Figure":
        """Draw the tokens in two columns with lines between them.

        The lines of different heads between the same tokens are side by side. Queries without lines are grey.
        """
        left, right = ([shorten_token(each) for each in side] for side in (self.rows, self.columns))
        count = max(len(left), len(right))
        thickest = _THICKEST if len(self.headings) == 1 else _THICKEST / 2
        row = min(_ROW, (_MAX_HEIGHT - _TITLE - _LEGEND * (len(self.headings) + 1)) / count)
        points = _POINTS * row / _ROW
        start = _MARGIN + max(text_width(each, points) for each in left) + 0.1
        end = start + _SPAN
        width = max(end + 0.1 + max(text_width(each, points) for each in right) + _MARGIN, 6.5)
        bottom = _TITLE + count * row
        height = bottom + _LEGEND * (len(self.headings) + 1)
        figure, axes = axes_in_inches(width, height)
        draw_title(axes, self.title, _MARGIN, _TITLE / 2)
        shared: dict[str, Any] = {"fontsize": points, "va": "center", "parse_math": False}
        for number, token in enumerate(left):
            ink = QUIET if self.query not in (None, number) else INK
            axes.text(start - 0.08, _middle(number, row), token, color=ink, ha="right", **shared)
        for number, token in enumerate(right):
            axes.text(end + 0.08, _middle(number, row), token, color=INK, **shared)
        for head, first, second, weight in sorted(self.lines(), key=lambda line: -line[3]):  # thin lines on top
            shift = row * _SPREAD * ((head + 0.5) / len(self.headings) - 0.5)
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
        for number, heading in enumerate(self.headings):
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


def head_lines(
    attention: AttentionMap,
    heads: Sequence[int | None] | None = None,
    query: int | None = None,
    smallest: float = SMALLEST,
) -> HeadLines:
    """Return the lines of heads of a layer, such as those from a verb to who did it, and to whom.

    heads: numbers of the heads, from 1, or None for their mean; None alone: all heads. query: the only query with
    lines, from 0; None: all. smallest: weight below which a line is omitted. Raises ConfigError for an unknown head or
    query.
    """
    numbers = range(1, len(attention.weights) + 1) if heads is None else heads
    if query is not None and not 0 <= query < len(attention.queries):
        raise ConfigError(f"there is no token {query + 1}: the text has the tokens 1 to {len(attention.queries)}")
    token = "" if query is None else f", from {attention.queries[query]!r}"
    return HeadLines(
        title=f"{layer_title(attention)}{token}",
        caption="Each line is the attention weight from a token on the left to a token on the right. Thick lines are "
        f"large weights, and each head has a colour. Weights below {smallest:g} have no line.",
        slide="deck 000, positions, self-attention, masks, heads; deck 002, similarities, queries, keys, values, heads",
        limits="A head rarely has one role such as who, did what, or to whom. A large weight shows what the head "
        "reads, not what the output depends on.",
        rows=attention.queries,
        columns=attention.keys,
        headings=tuple("mean of the heads" if number is None else f"head {number}" for number in numbers),
        weights=np.stack([head_weights(attention, number) for number in numbers]),
        query=query,
        smallest=smallest,
    )


def _middle(number: int, row: float) -> float:
    return _TITLE + (number + 0.5) * row
