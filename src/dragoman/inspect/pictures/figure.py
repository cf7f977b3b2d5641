"""What all pictures share: colours, fonts, and how a figure becomes a file."""

import warnings
from io import BytesIO
from pathlib import Path

from matplotlib import font_manager
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from dragoman.base.files import atomic_write

INK, QUIET, GRID = "#1f2933", "#66737f", "#e4e8ec"
BLUE, ORANGE = "#1f5fa8", "#d9731a"

# DejaVu comes with matplotlib; the others are tried where they are installed, for scripts that it lacks.
_WANTED_FONTS = (
    "DejaVu Sans",
    "Noto Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans Arabic",
    "Arial Unicode MS",
)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches."""
    figure = Figure(figsize=(width, height), dpi=140, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, png: Path) -> None:
    """Write a figure as a PNG file."""
    installed = set(font_manager.get_font_names())
    fonts = [font for font in _WANTED_FONTS if font in installed]
    for text in figure.findobj(Text):
        text.set_fontfamily(fonts)
    buffer = BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        figure.savefig(buffer, format="png")
    atomic_write(png, buffer.getvalue())
