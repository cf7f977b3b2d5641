"""`SearchTreeFigure`: the hypotheses of a beam search by step and rank, with the best and the greedy path."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import DataError
from dragoman.figures.figure import Figure, indices
from dragoman.figures.hypotheses import FORBIDDEN, PRUNED, Outcome, TreeNode

if TYPE_CHECKING:
    import matplotlib.figure


@dataclass(frozen=True, eq=False, kw_only=True)
class SearchTreeFigure(Figure):
    """A search tree. source: the input. nodes: the root first, parents before children. outcomes: best first.

    exact: the best output of an exact search, whose `node` is the last one on its path that the beam search considered;
    None without exact search.
    """

    kind: ClassVar[str] = "search-tree"

    source: str
    nodes: tuple[TreeNode, ...]
    outcomes: tuple[Outcome, ...]
    exact: Outcome | None = None

    @cached_property
    def best_path(self) -> tuple[int, ...]:
        """The nodes of the best translation, the root first; empty if it is not in the tree."""
        return self.path(self.outcomes[0].node) if self.outcomes else ()

    @cached_property
    def greedy_path(self) -> tuple[int, ...]:
        """The nodes that greedy search visits, the root first, up to the last one that the tree contains.

        The path ends early if its next token was not among the best continuations of the whole beam.
        """
        children: dict[int, list[int]] = defaultdict(list)
        for number, node in enumerate(self.nodes):
            if node.parent is not None and node.fate != FORBIDDEN:
                children[node.parent].append(number)
        path = [0] if self.nodes else []
        while path and children[path[-1]]:
            path.append(max(children[path[-1]], key=lambda number: self.nodes[number].log_probability))
        return tuple(path)

    @property
    def greedy_is_cut(self) -> bool:
        """Whether greedy search would continue after the last node of its path, which the beam has pruned."""
        return bool(self.greedy_path) and self.nodes[self.greedy_path[-1]].fate.startswith(PRUNED)

    @cached_property
    def exact_path(self) -> tuple[int, ...]:
        """The nodes of the exact search's best output, the root first, up to the last one that the tree contains."""
        return self.path(self.exact.node) if self.exact else ()

    def path(self, node: int | None) -> tuple[int, ...]:
        """Return the numbers of a node and its ancestors, the root first; empty for None."""
        found: list[int] = []
        while node is not None:
            found.append(node)
            node = self.nodes[node].parent
        return tuple(reversed(found))

    @cached_property
    def lanes(self) -> NDArray[np.int32]:
        """The row (N,) of each node, from 0: its rank, below the ranks of earlier groups.

        Forbidden continuations, which have no rank, are below the ranked continuations of their step and group.
        """
        ranks: dict[tuple[int, int], int] = defaultdict(int)
        for node in self.nodes:
            if node.rank is not None:
                ranks[node.step, node.group] = max(ranks[node.step, node.group], node.rank + 1)
        within = []
        for node in self.nodes:
            within.append(ranks[node.step, node.group] if node.rank is None and node.step else node.rank or 0)
            ranks[node.step, node.group] += node.rank is None and node.step > 0
        heights = np.zeros(max((node.group for node in self.nodes), default=0) + 2, np.int32)
        for node, lane in zip(self.nodes, within, strict=True):
            heights[node.group + 1] = max(heights[node.group + 1], lane + 1)
        starts = heights.cumsum()
        return np.array([starts[node.group] + lane for node, lane in zip(self.nodes, within, strict=True)], np.int32)

    def details(self) -> dict[str, Any]:
        """Return tokens, fates, translations with the parts of their scores, and the paths."""
        return {
            "source": self.source,
            "pieces": [node.piece for node in self.nodes],
            "fates": self._fates,
            "outcomes": [each.as_json() for each in self.outcomes],
            "exact": self.exact.as_json() if self.exact else None,
            "best_path": list(self.best_path),
            "greedy_path": list(self.greedy_path),
            "greedy_is_cut": self.greedy_is_cut,
            "exact_path": list(self.exact_path),
        }

    @property
    def _fates(self) -> list[str]:
        return list(dict.fromkeys(node.fate for node in self.nodes))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return one value (N,) per node; −1 stands for no parent or rank, and `fate` is a position in `fates`."""
        fates = self._fates
        return {
            "parent": indices(node.parent for node in self.nodes),
            "step": indices(node.step for node in self.nodes),
            "lane": self.lanes,
            "rank": indices(node.rank for node in self.nodes),
            "group": indices(node.group for node in self.nodes),
            "fate": np.array([fates.index(node.fate) for node in self.nodes], np.uint8),
            **{
                name: np.array([getattr(node, name) for node in self.nodes], np.float64)
                for name in ("log_probability", "total", "score")
            },
        }

    def table(self) -> Iterator[Sequence[Any]]:
        """Yield one row per hypothesis."""
        yield "node", *TreeNode._fields
        for number, node in enumerate(self.nodes):
            yield number, *("" if value is None else value for value in node)

    def draw(self) -> "matplotlib.figure.Figure":
        """Draw steps from left to right, ranks from top to bottom, and the translations below the tree."""
        from dragoman.figures.pictures.search_tree import Paths, draw_search_tree

        paths = Paths(self.best_path, self.greedy_path, self.exact_path)
        return draw_search_tree(self.title, self.nodes, self.lanes.tolist(), paths, self.outcomes, self.exact)


def search_tree(record: Mapping[str, Any]) -> SearchTreeFigure:
    """Return the figure of a line in the file of `dragoman translate --tree`, as `tree_of` returns it.

    Raises DataError if the record is not a search tree, or has no nodes.
    """
    try:
        nodes = tuple(
            TreeNode._make("" if name == "piece" and node[name] is None else node[name] for name in TreeNode._fields)
            for node in record["nodes"]
        )
        outcomes = tuple(
            Outcome(each["node"], each["text"], each["score"], each["log_probability"])
            for each in record["translations"]
        )
        line, source = record["line"], record["source"]
    except (KeyError, TypeError) as error:
        raise DataError(f"not a search tree as written by `dragoman translate --tree`: {error!r}") from None
    if not nodes:
        raise DataError(f"the search tree of line {line} is empty, because the text is blank")
    return SearchTreeFigure(
        title=f"Search tree: {source}",
        caption="All hypotheses that the beam search considered, by step (left to right) and rank (top to bottom). The "
        "blue path is the best translation, and the orange path is what greedy search chooses.",
        slide="deck 004, greedy and beam search",
        limits="Each step shows the 2 · beam best continuations only. The greedy path ends where the beam pruned it.",
        source=source,
        nodes=nodes,
        outcomes=outcomes,
    )
