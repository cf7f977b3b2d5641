"""Panels of curves with legends and marked best values."""

from collections.abc import Sequence
from math import ceil
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from dragoman.figures.curve import Curve, CurvePanel
from dragoman.figures.pictures.figure import DASHES, MARKERS, new_figure
from dragoman.figures.style import COLOURS, GRID, INK, QUIET

_PART_STYLES = (("--", "v"), (":", "s"), ("-.", "^"))
"""Lines and points of the parts of a mean. Points make a single value visible."""


def draw_curves(title: str, panels: Sequence[CurvePanel], x_label: str) -> Figure:
    """Draw panels in up to three columns. Lines of different colours also differ in their dashes."""
    count = len(panels)
    columns = min(count, 2 if count <= 4 else 3)
    rows = ceil(count / columns)
    figure = new_figure(5.25 * columns, 3.3 * rows)
    for number, panel in enumerate(panels, 1):
        _draw_panel(figure.add_subplot(rows, columns, number), panel, x_label)
    figure.suptitle(title, fontsize=9, color=QUIET, x=0.02, ha="left")
    return figure


def _draw_panel(axes: Axes, panel: CurvePanel, x_label: str) -> None:
    parts = 0
    for curve in panel.curves:
        if not len(curve.x):
            continue
        if curve.style == "part":
            line, marker = _PART_STYLES[parts % len(_PART_STYLES)]
            parts += 1
            style: dict[str, Any] = {
                "linestyle": line,
                "marker": marker,
                "markersize": 3,
                "color": QUIET,
                "linewidth": 1,
            }
            axes.plot(curve.x, curve.y, label=curve.label, **style)
        else:
            _draw_curve(axes, curve)
    if panel.is_logarithmic:
        axes.set_yscale("log")
    if panel.limits is not None:
        axes.set_ylim(*panel.limits)
    if panel.best is not None:
        axes.plot(*panel.best, marker="o", markersize=8, markerfacecolor="none", markeredgecolor=INK)
    if panel.note:
        axes.text(0.5, 0.5, panel.note, transform=axes.transAxes, ha="center", color=QUIET, fontsize=9)
    if sum(bool(len(curve.x)) for curve in panel.curves) > 1:
        for text in axes.legend(frameon=False, fontsize=8, labelcolor=INK).get_texts():
            text.set_parse_math(False)
    _format_axes(axes, panel, x_label)


def _draw_curve(axes: Axes, curve: Curve) -> None:
    is_faint, has_points = curve.style == "faint", curve.style == "points"
    has_points = has_points or len(curve.x) == 1  # a line of one point is invisible
    axes.plot(
        curve.x,
        curve.y,
        color=COLOURS[curve.colour % len(COLOURS)],
        linestyle="solid" if is_faint or has_points else DASHES[curve.colour % len(DASHES)],
        label=None if is_faint else curve.label,
        alpha=0.28 if is_faint else 1.0,
        linewidth=1 if is_faint else 1.6,
        marker=MARKERS[curve.colour % len(MARKERS)] if has_points else "",
        markersize=3.5,
    )


def _format_axes(axes: Axes, panel: CurvePanel, x_label: str) -> None:
    axes.set_title(panel.heading, fontsize=11, color=INK, loc="left")
    if panel.unit:
        axes.set_ylabel(panel.unit, fontsize=8, color=QUIET)
    elif not panel.is_logarithmic:
        axes.ticklabel_format(axis="y", style="sci", scilimits=(-2, 4), useMathText=True)
        axes.yaxis.get_offset_text().set_fontsize(8)
    axes.set_xlabel(x_label, fontsize=8, color=QUIET)
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8, colors=QUIET, length=0)
    if panel.is_logarithmic:
        low, high = axes.get_ylim()
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 1000 * low else (1,)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(GRID)
