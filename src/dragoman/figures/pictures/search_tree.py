"""A search tree: hypotheses in columns by step and rows by rank, and the translations below."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from dragoman.figures.hypotheses import FINISHED, FORBIDDEN, PRUNED, Outcome, TreeNode
from dragoman.figures.pictures.figure import minus_sign, new_figure, shorten_text, shorten_token, text_width
from dragoman.figures.style import BLUE, GREEN, GRID, INK, ORANGE, QUIET

_LABEL, _POINTS = 14, 8.0
"""Maximum number of characters of a token, and font size."""

_LANE, _BOX, _GAP = 0.36, 0.2, 0.45
"""Distance of rows, height of a box, and width of the space between columns for the lines, in inches."""

_TITLE, _MARGIN, _LINE = 0.6, 0.25, 0.22
_MAX_WIDTH, _MAX_HEIGHT = 60.0, 40.0
"""Maximum size of a picture in inches; larger trees are drawn with smaller boxes and letters."""

_MARKS = {FINISHED: "■", FORBIDDEN: "✕"}
"""Marks of fates in front of the token, so that fates can be distinguished without colours."""
_PRUNED_MARK = "·"

_LEGEND = (
    "— best translation   ╌ greedy search   {exact}■ finished   · pruned   ✕ forbidden by a rule   number: "
    "log-probability of the token"
)
_EXACT = "┄ exact search   "


class Paths(NamedTuple):
    """Nodes of the best output, of the greedy path, and of the exact search's best output, each with the root first."""

    best: Sequence[int]
    greedy: Sequence[int]
    exact: Sequence[int]


def draw_search_tree(
    title: str,
    nodes: Sequence[TreeNode],
    lanes: Sequence[int],
    paths: Paths,
    outcomes: Sequence[Outcome],
    exact: Outcome | None,
) -> Figure:
    """Draw a search tree, the root on the left. lanes: the row of each node, from 0."""
    labels = [_label(node) for node in nodes]
    box = max(text_width(label, _POINTS) for label in labels) + 0.12
    steps, rows = max(node.step for node in nodes) + 1, max(lanes) + 1
    footer = _LINE * (len(outcomes) + 3 + (exact is not None))
    scale = min(1.0, _MAX_WIDTH / (steps * (box + _GAP)), (_MAX_HEIGHT - _TITLE - footer) / (rows * _LANE))
    layout = _Layout(box * scale, _GAP * scale, _LANE * scale, scale)
    boxes = [(layout.left(node), layout.middle(lane)) for node, lane in zip(nodes, lanes, strict=True)]
    width = max(2 * _MARGIN + steps * (layout.box + layout.gap), 8.5)
    height = _TITLE + rows * layout.lane + footer
    figure = new_figure(width, height, layout=None)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.text(_MARGIN, _TITLE / 2, shorten_text(title, 110), fontsize=12, color=INK, va="center", parse_math=False)
    _draw_edges(axes, nodes, boxes, layout, paths)
    for number, (node, label) in enumerate(zip(nodes, labels, strict=True)):
        _draw_node(axes, node, label, boxes[number], layout, number in paths.best)
    _draw_footer(axes, _TITLE + rows * layout.lane, outcomes, exact)
    axes.set(xlim=(0, width), ylim=(height, 0))
    return figure


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


def _label(node: TreeNode) -> str:
    if node.parent is None:
        return "start"
    mark = _MARKS.get(node.fate, _PRUNED_MARK if node.fate.startswith(PRUNED) else "")
    return f"{mark} {shorten_token(node.piece, _LABEL)}".strip()


def _draw_edges(
    axes: Axes,
    nodes: Sequence[TreeNode],
    boxes: Sequence[tuple[float, float]],
    layout: _Layout,
    paths: Paths,
) -> None:
    """Draw the lines between boxes, whose left edges and vertical middles are given."""
    best = set(paths.best)

    def edge(parent: int, child: int, shift: float = 0.0) -> list[tuple[float, float]]:
        (left, top), (right, bottom) = boxes[parent], boxes[child]
        return [(left + layout.box, top + shift), (right, bottom + shift)]

    others = [(node.parent, n) for n, node in enumerate(nodes) if node.parent is not None and n not in best]
    path = [(node.parent, n) for n, node in enumerate(nodes) if node.parent is not None and n in best]
    axes.add_collection(LineCollection([edge(*each) for each in others], colors=GRID, linewidths=1.0, zorder=1))
    axes.add_collection(LineCollection([edge(*each) for each in path], colors=BLUE, linewidths=2.0, zorder=2))
    for nodes_of_path, shift, colour, dashes in (
        (paths.greedy, 0.05, ORANGE, (4, 2)),
        (paths.exact, -0.05, GREEN, (1, 1)),
    ):
        lines = [edge(*each, shift * layout.scale) for each in pairwise(nodes_of_path)]
        axes.add_collection(LineCollection(lines, colors=colour, linewidths=1.5, linestyles=[(0, dashes)], zorder=3))


def _draw_node(
    axes: Axes, node: TreeNode, label: str, box: tuple[float, float], layout: _Layout, is_best: bool
) -> None:
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


def _draw_footer(axes: Axes, top: float, outcomes: Sequence[Outcome], exact: Outcome | None) -> None:
    legend = _LEGEND.format(exact=_EXACT if exact else "")
    axes.text(_MARGIN, top + _LINE, legend, fontsize=8, color=QUIET, va="center")
    rows = [(f"{number}. ", each) for number, each in enumerate(outcomes, 1)]
    for number, (name, each) in enumerate([*rows, *([("exact: ", exact)] if exact else [])], 1):
        values = (each.score, each.log_probability, abs(each.penalty))
        score, log_probability, penalty = (minus_sign(f"{value:.3f}") for value in values)
        sign = "−" if each.penalty < 0 else "+"
        line = f"{name} score {score} = {log_probability} (log-probability) {sign} {penalty} (penalty)"
        middle = top + _LINE * (number + 1.2)
        axes.text(_MARGIN, middle, line, fontsize=8, color=QUIET, va="center")
        style: dict[str, Any] = {"fontsize": 9, "color": INK, "va": "center", "parse_math": False}
        axes.text(_MARGIN + 4.1, middle, shorten_text(each.text, 90), **style)
