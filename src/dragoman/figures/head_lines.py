"""`HeadLines`: the attention weights of heads as lines between tokens, one colour per head."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import ConfigError
from dragoman.figures.figure import Figure
from dragoman.figures.heads import head_weights, layer_title
from dragoman.models.attention_weights import AttentionMap

if TYPE_CHECKING:
    import matplotlib.figure

SMALLEST = 0.1
"""Weight below which a line is omitted."""


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
        """Draw the tokens in two columns with lines between them."""
        from dragoman.figures.pictures.head_lines import draw_head_lines

        return draw_head_lines(self.title, (self.rows, self.columns), self.headings, list(self.lines()), self.query)


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
