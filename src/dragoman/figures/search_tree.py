"""`SearchTreeFigure`: the hypotheses of a beam search by step and rank, with the best and the greedy path."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import DataError
from dragoman.figures.canvas import axes_in_inches, draw_title
from dragoman.figures.figure import Figure, indices
from dragoman.figures.style import BLUE, GREEN, GRID, INK, ORANGE, QUIET
from dragoman.figures.text_layout import minus_sign, shorten_text, shorten_token, text_width

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes

FINISHED, FORBIDDEN, PRUNED = "finished", "pruned: forbidden", "pruned"
"""Fates of hypotheses (docs/reference/search-tree.md), and the start of all reasons for pruning."""

_LABEL, _POINTS = 14, 8.0
"""Maximum number of characters of a token, and font size."""

_LANE, _BOX, _GAP = 0.36, 0.2, 0.45
"""Distance of rows, height of a box, and width of the space between columns for the lines, in inches."""

_TITLE, _MARGIN, _LINE = 0.6, 0.25, 0.22
_MAX_WIDTH, _MAX_HEIGHT = 60.0, 40.0
"""Maximum size of a picture in inches; larger trees are drawn with smaller boxes and letters."""

_MARKS = {FINISHED: "■", FORBIDDEN: "✕"}
"""Marks of fates before the token, so that fates can be distinguished without colours."""
_PRUNED_MARK = "·"

_LEGEND = (
    "— best translation   ╌ greedy search   {exact}■ finished   · pruned   ✕ forbidden by a rule   number: "
    "log-probability of the token"
)
_EXACT = "┄ exact search   "


class TreeNode(NamedTuple):
    """A hypothesis; the fields are those of a node in the file of `dragoman translate --tree`.

    piece: the last token, empty for the root.
    """

    parent: int | None
    step: int
    piece: str
    log_probability: float
    total: float
    score: float
    rank: int | None
    group: int
    fate: str


class Outcome(NamedTuple):
    """A translation. node: its node, or None if it is not in the tree. The score is log-probability + penalty."""

    node: int | None
    text: str
    score: float
    log_probability: float

    @property
    def penalty(self) -> float:
        """The part of the score that is not a probability: the length penalty and other terms of the search."""
        return self.score - self.log_probability

    def as_json(self) -> dict[str, Any]:
        """Return the values and the penalty as JSON types."""
        return {**self._asdict(), "penalty": self.penalty}


class _Layout(NamedTuple):
    """Width of a box and of a gap, and distance of rows, in inches, and the scale of letters."""

    box: float
    gap: float
    lane: float
    scale: float

    def left(self, node: TreeNode) -> float:
        """The left edge of a node's box."""
        return _MARGIN + node.step * (self.box + self.gap)

    def middle(self, lane: int) -> float:
        """The vertical middle of the boxes of a row."""
        return _TITLE + (lane + 0.5) * self.lane


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
        labels = [_label(node) for node in self.nodes]
        lanes = self.lanes.tolist()
        box = max(text_width(label, _POINTS) for label in labels) + 0.12
        steps, rows = max(node.step for node in self.nodes) + 1, max(lanes) + 1
        footer = _LINE * (len(self.outcomes) + 3 + (self.exact is not None))
        scale = min(1.0, _MAX_WIDTH / (steps * (box + _GAP)), (_MAX_HEIGHT - _TITLE - footer) / (rows * _LANE))
        layout = _Layout(box * scale, _GAP * scale, _LANE * scale, scale)
        boxes = [(layout.left(node), layout.middle(lane)) for node, lane in zip(self.nodes, lanes, strict=True)]
        width = max(2 * _MARGIN + steps * (layout.box + layout.gap), 8.5)
        height = _TITLE + rows * layout.lane + footer
        figure, axes = axes_in_inches(width, height)
        draw_title(axes, shorten_text(self.title, 110), _MARGIN, _TITLE / 2)
        self._draw_edges(axes, boxes, layout)
        for number, (node, label) in enumerate(zip(self.nodes, labels, strict=True)):
            _draw_node(axes, node, label, boxes[number], layout, is_best=number in self.best_path)
        self._draw_footer(axes, _TITLE + rows * layout.lane)
        return figure

    def _draw_edges(self, axes: "Axes", boxes: Sequence[tuple[float, float]], layout: _Layout) -> None:
        """Draw the lines between boxes, whose left edges and vertical middles are given."""
        from matplotlib.collections import LineCollection

        best = set(self.best_path)

        def edge(parent: int, child: int, shift: float = 0.0) -> list[tuple[float, float]]:
            (left, top), (right, bottom) = boxes[parent], boxes[child]
            return [(left + layout.box, top + shift), (right, bottom + shift)]

        others = [(node.parent, n) for n, node in enumerate(self.nodes) if node.parent is not None and n not in best]
        path = [(node.parent, n) for n, node in enumerate(self.nodes) if node.parent is not None and n in best]
        axes.add_collection(LineCollection([edge(*each) for each in others], colors=GRID, linewidths=1.0, zorder=1))
        axes.add_collection(LineCollection([edge(*each) for each in path], colors=BLUE, linewidths=2.0, zorder=2))
        for nodes_of_path, shift, colour, dashes in (
            (self.greedy_path, 0.05, ORANGE, (4, 2)),
            (self.exact_path, -0.05, GREEN, (1, 1)),
        ):
            lines = [edge(*each, shift * layout.scale) for each in pairwise(nodes_of_path)]
            axes.add_collection(
                LineCollection(lines, colors=colour, linewidths=1.5, linestyles=[(0, dashes)], zorder=3)
            )

    def _draw_footer(self, axes: "Axes", top: float) -> None:
        legend = _LEGEND.format(exact=_EXACT if self.exact else "")
        axes.text(_MARGIN, top + _LINE, legend, fontsize=8, color=QUIET, va="center")
        rows = [(f"{number}. ", each) for number, each in enumerate(self.outcomes, 1)]
        for number, (name, each) in enumerate([*rows, *([("exact: ", self.exact)] if self.exact else [])], 1):
            values = (each.score, each.log_probability, abs(each.penalty))
            score, log_probability, penalty = (minus_sign(f"{value:.3f}") for value in values)
            sign = "−" if each.penalty < 0 else "+"
            line = f"{name} score {score} = {log_probability} (log-probability) {sign} {penalty} (penalty)"
            middle = top + _LINE * (number + 1.2)
            axes.text(_MARGIN, middle, line, fontsize=8, color=QUIET, va="center")
            style: dict[str, Any] = {"fontsize": 9, "color": INK, "va": "center", "parse_math": False}
            axes.text(_MARGIN + 4.1, middle, shorten_text(each.text, 90), **style)


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


def _label(node: TreeNode) -> str:
    if node.parent is None:
        return "start"
    mark = _MARKS.get(node.fate, _PRUNED_MARK if node.fate.startswith(PRUNED) else "")
    return f"{mark} {shorten_token(node.piece, _LABEL)}".strip()


def _draw_node(
    axes: "Axes", node: TreeNode, label: str, box: tuple[float, float], layout: _Layout, *, is_best: bool
) -> None:
    from matplotlib.patches import Rectangle

    (left, middle), height = box, _BOX * layout.scale
    is_pruned = node.fate.startswith(PRUNED)
    edge = BLUE if is_best else GRID if is_pruned else QUIET
    face = "#d5e4f3" if node.fate == FINISHED else "white"
    style: dict[str, Any] = {"facecolor": face, "edgecolor": edge, "linewidth": 1.6 if is_best else 0.8}
    axes.add_patch(Rectangle((left, middle - height / 2), layout.box, height, zorder=4, **style))
    centre = left + layout.box / 2
    ink = QUIET if is_pruned else INK
    shared: dict[str, Any] = {"ha": "center", "va": "center", "parse_math": False, "zorder": 5}
    axes.text(centre, middle, label, fontsize=_POINTS * layout.scale, color=ink, **shared)
    if node.parent is not None:
        number = minus_sign(f"{node.log_probability:.2f}")
        below = middle + height / 2 + 0.055 * layout.scale
        axes.text(centre, below, number, fontsize=5 * layout.scale, color=QUIET, **shared)
