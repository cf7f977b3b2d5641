"""The neighbours of a node: one panel per layer, in which lines to the neighbours show their attention weights."""

from collections.abc import Sequence
from math import cos, pi, sin
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.figures.canvas import colour_map, new_figure, save
from dragoman.figures.style import BLUE, GRID, INK, QUIET, SHADES
from dragoman.figures.text_layout import shorten_text
from dragoman.models.attention_weights import NeighbourWeights

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANEL = 5.2
"""Side of a panel in inches."""

_MAX_NEIGHBOURS = 20
"""Maximum number of neighbours of a panel; those with the largest weights are shown."""

_THICKEST = 9.0
"""Width in points of the line of the largest weight."""


def draw_neighbours(node: str, title: str, layers: Sequence[NeighbourWeights], *files: Path) -> None:
    """Draw the mean weights over the heads in each layer, largest first, clockwise from the top.

    node: the id of the node. title: follows the id. layers: the weights of each layer, the lowest first.
    files: output files; the format is PNG or SVG, according to the suffix.
    """
    count = len(layers)
    figure = new_figure(_PANEL * count, _PANEL + 0.5)
    figure.suptitle(f"{shorten_text(node)}: {title}", color=INK, fontsize=12, parse_math=False)
    largest = max((float(layer.mean.max()) for layer in layers if len(layer.ids)), default=1.0)
    for number, layer in enumerate(layers, 1):
        axes = figure.add_subplot(1, count, number)
        heads = len(layer.weights)
        kind = "attention weight" if heads == 1 else f"mean attention weight of {heads} heads"
        axes.set_title(f"layer {number}, {kind}", fontsize=10, color=INK)
        _draw_layer(axes, node, layer, largest)
    save(figure, *files)


def _draw_layer(axes: "Axes", node: str, layer: NeighbourWeights, largest: float) -> None:
    axes.set_axis_off()
    axes.set(xlim=(-1.75, 1.75), ylim=(-1.6, 1.6), aspect="equal")
    shown, shades = layer.order[:_MAX_NEIGHBOURS], colour_map(SHADES)
    for position, index in enumerate(shown):
        angle = pi / 2 - 2 * pi * position / len(shown)
        x, y, weight = cos(angle), sin(angle), float(layer.mean[index])
        fraction = weight / largest
        axes.plot(
            [0, x], [0, y], color=shades(0.2 + 0.8 * fraction), linewidth=max(0.4, _THICKEST * fraction), zorder=1
        )
        axes.plot(x, y, "o", color=BLUE, markersize=6, zorder=2)
        name = (
            f"{shorten_text(layer.ids[index])} (itself)" if layer.ids[index] == node else shorten_text(layer.ids[index])
        )
        axes.text(
            1.1 * x,
            1.1 * y,
            f"{name}\n{shorten_text(layer.labels[index])}\n{weight:.2f}",
            fontsize=7,
            color=INK,
            ha="center" if abs(x) < 0.3 else "left" if x > 0 else "right",
            va="center" if abs(y) < 0.9 else "bottom" if y > 0 else "top",
            parse_math=False,
        )
    axes.plot(0, 0, "o", color=INK, markeredgecolor=GRID, markersize=11, zorder=3)
    if not shown:
        axes.text(0, -0.2, "no neighbours", fontsize=9, color=QUIET, ha="center")
    if hidden := len(layer.ids) - len(shown):
        rest = float(layer.mean[layer.order[_MAX_NEIGHBOURS:]].sum())
        axes.text(0, -1.55, f"{hidden} further neighbours: {rest:.2f}", fontsize=8, color=QUIET, ha="center")
