"""What all pictures share: colours, fonts, and how a figure becomes a file."""

from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.text import Text

from dragoman.base.files import atomic_write
from dragoman.inspect.pictures.fonts import FIRST, boxes, covering

INK, QUIET, GRID = "#1f2933", "#66737f", "#e4e8ec"
BLUE, ORANGE = "#1f5fa8", "#d9731a"
SIGNED = LinearSegmentedColormap.from_list("signed", ["#8a3d06", "#e89a4f", "#ffffff", "#6a9fd4", "#0d2f5c"])
SHADES = LinearSegmentedColormap.from_list("attention", ["#ffffff", "#d5e4f3", "#86b3dc", "#2f74b5", "#0d2f5c"])

RESOLUTION = 140
"""Pixels an inch of a PNG."""

_OF_SVG: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: it can be searched, and a browser has fonts for any script
    "svg.hashsalt": "dragoman",  # the same figure gives the same bytes
    "font.sans-serif": [FIRST],  # and after it, in an SVG, whatever a browser takes for sans-serif
}


def new_figure(width: float, height: float, layout: str | None = "constrained") -> Figure:
    """An empty figure of so many inches. layout: matplotlib's engine; None: whoever draws says where axes stand."""
    figure = Figure(figsize=(width, height), dpi=RESOLUTION, facecolor="white", layout=layout)  # type: ignore[arg-type]
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, *paths: Path) -> None:
    """Write a figure as a PNG or an SVG file, as each name's ending says."""
    texts = figure.findobj(Text)
    families = covering("".join(text.get_text() for text in texts if isinstance(text, Text))).families
    for text in texts:
        text.set_fontfamily([*families, "sans-serif"])
    for path in paths:
        buffer = BytesIO()
        with boxes(), matplotlib.rc_context(_OF_SVG):
            if path.suffix == ".svg":
                figure.savefig(buffer, format="svg", metadata={"Date": None})
            else:
                figure.savefig(buffer, format="png")
        atomic_write(path, buffer.getvalue())


def frame(axes: Axes) -> None:
    """Thin grey lines around a heat map."""
    for spine in axes.spines.values():
        spine.set_color(GRID)
        spine.set_linewidth(0.8)
