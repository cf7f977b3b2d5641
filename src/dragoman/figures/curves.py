"""`Curves`: panels with lines over a common horizontal axis, such as the learning curves of several runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dragoman.figures.canvas import DASHES, MARKERS, new_figure
from dragoman.figures.figure import Figure
from dragoman.figures.style import COLOURS, GRID, INK, QUIET

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
Style = Literal["line", "faint", "points", "part"]
"""A line; a faint line without an entry in the legend; a line with a point at each value; a thin grey line with points,
for a part of a mean."""

_PIXELS = 1000
"""Number of pixel columns for which the curves of a picture are thinned, which exceeds the width of a panel."""

_PART_STYLES = (("--", "v"), (":", "s"), ("-.", "^"))
"""Lines and points of the parts of a mean. Points make a single value visible."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A line. x, y: (N,), x in rising order. colour: number of a colour; curves of one run have the same colour.

    band: the ends (N,) of a range around each y, such as the lowest and the highest value of several seeds.
    """

    label: str
    x: Floats
    y: Floats
    colour: int = 0
    style: Style = "line"
    band: tuple[Floats, Floats] | None = None

    def thinned(self, pixels: int) -> "Curve":
        """Return the curve with at most four points per pixel column, in order: first, smallest, largest and last.

        A picture that is `pixels` wide is the same with these points, and no extreme value is lost.
        """
        if len(self.x) <= 4 * pixels:
            return self
        kept = thinned_positions(self.x, self.y, pixels)
        band = None if self.band is None else (self.band[0][kept], self.band[1][kept])
        return replace(self, x=self.x[kept], y=self.y[kept], band=band)


@dataclass(frozen=True, eq=False)
class CurvePanel:
    """Curves with common axes.

    unit: label of the vertical axis. is_logarithmic: scale of the vertical axis. limits: its ends; None: from the
    values. best: the point (x, y) to mark, or None. note: text in a panel without curves.
    """

    heading: str
    unit: str
    curves: tuple[Curve, ...]
    is_logarithmic: bool = False
    limits: tuple[float, float] | None = None
    best: tuple[float, float] | None = None
    note: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Curves(Figure):
    """Panels of curves. x_label: name of the horizontal axis."""

    kind: ClassVar[str] = "curves"

    panels: tuple[CurvePanel, ...]
    x_label: str = "step"

    def thinned(self, pixels: int) -> "Curves":
        """Return the figure for panels of this width, in which extreme values are kept (see `Curve.thinned`)."""
        panels = tuple(
            replace(panel, curves=tuple(curve.thinned(pixels) for curve in panel.curves)) for panel in self.panels
        )
        return replace(self, panels=panels)

    def details(self) -> dict[str, Any]:
        """Return headings, units and scales of the panels, and the names of the arrays of each curve."""
        return {
            "x_label": self.x_label,
            "panels": [
                {
                    "heading": panel.heading,
                    "unit": panel.unit,
                    "logarithmic": panel.is_logarithmic,
                    "limits": panel.limits,
                    "best": panel.best,
                    "note": panel.note,
                    "curves": [
                        {"label": curve.label, "colour": curve.colour, "style": curve.style, "array": _name(p, c)}
                        for c, curve in enumerate(panel.curves)
                    ],
                }
                for p, panel in enumerate(self.panels)
            ],
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return an array (2, N) per curve, x and y, and another one for the ends of its band.

        `panel-0.curve-0` and `panel-0.curve-0.band` are the first ones.
        """
        named = {_name(p, c): curve for p, panel in enumerate(self.panels) for c, curve in enumerate(panel.curves)}
        bands = {f"{name}.band": np.stack(curve.band) for name, curve in named.items() if curve.band is not None}
        return {name: np.stack([curve.x, curve.y]) for name, curve in named.items()} | bands

    def table(self) -> Iterator[Sequence[Any]]:
        """Yield one row per point."""
        yield "panel", "curve", self.x_label, "value"
        for panel in self.panels:
            for curve in panel.curves:
                ends = () if curve.band is None else zip(("lowest", "highest"), curve.band, strict=True)
                for label, values in ((curve.label, curve.y), *((f"{curve.label}, {end}", each) for end, each in ends)):
                    for x, y in zip(curve.x.tolist(), values.tolist(), strict=True):
                        yield panel.heading, label, x, y

    def draw(self) -> "matplotlib.figure.Figure":
        """Draw the panels in up to three columns. Lines of different colours also differ in their dashes."""
        panels = self.thinned(_PIXELS).panels
        columns = min(len(panels), 2 if len(panels) <= 4 else 3)
        rows = ceil(len(panels) / columns)
        figure = new_figure(5.25 * columns, 3.3 * rows)
        for number, panel in enumerate(panels, 1):
            _draw_panel(figure.add_subplot(rows, columns, number), panel, self.x_label)
        figure.suptitle(self.title, fontsize=9, color=QUIET, x=0.02, ha="left")
        return figure


def _name(panel: int, curve: int) -> str:
    return f"panel-{panel}.curve-{curve}"


def thinned_positions(x: Floats, y: Floats, pixels: int) -> NDArray[np.int64]:
    """Return the positions of the first, smallest, largest and last value in each of `pixels` columns, in order.

    x: (N,) in rising order. y: (N,) finite.
    """
    span = x[-1] - x[0]
    columns = (
        np.minimum(((x - x[0]) / span * pixels).astype(np.int64), pixels - 1)
        if span > 0
        else np.zeros(len(x), np.int64)
    )
    starts = np.flatnonzero(np.diff(columns, prepend=-1))
    ends = np.append(starts[1:], len(x)) - 1
    order = np.lexsort((y, columns))  # the values of each column in rising order
    return np.unique(np.concatenate([starts, ends, order[starts], order[ends]]))


def _draw_panel(axes: "Axes", panel: CurvePanel, x_label: str) -> None:
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


def _draw_curve(axes: "Axes", curve: Curve) -> None:
    if curve.band is not None:
        axes.fill_between(curve.x, *curve.band, color=COLOURS[curve.colour % len(COLOURS)], alpha=0.18, linewidth=0)
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


def _format_axes(axes: "Axes", panel: CurvePanel, x_label: str) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

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
