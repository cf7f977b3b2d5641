"""What all pictures share: sizes, colour scales, dashes, and the output as PNG and SVG."""

from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.base.files import atomic_write
from dragoman.figures.style import DEFAULT_FONT, GRID, INK
from dragoman.figures.text_layout import find_fonts, ignore_missing_glyphs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

# Functions that draw import matplotlib themselves, because its import takes a second.

DASHES: tuple[Any, ...] = ("solid", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 1.5, 1, 1.5)))
MARKERS = ("s", "o", "^", "v", "D", "P")
"""Dashes and points of lines, so that lines can be distinguished without colours."""

RESOLUTION = 140
"""Resolution of a PNG in pixels per inch."""

PIXELS_PER_INCH = 96
"""Pixels of a page per inch, by the definition of CSS."""

_SVG_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",  # keep text searchable, and let the browser choose fonts for any script
    "svg.hashsalt": "dragoman",  # make the output deterministic
    "font.sans-serif": [DEFAULT_FONT],  # in an SVG, the browser's sans-serif font is the fallback
}


@cache
def colour_map(colours: tuple[str, ...]) -> "LinearSegmentedColormap":
    """Return the colour map between colours at equal distances, such as `SHADES` and `SIGNED` of `style`."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("dragoman", colours)


def new_figure(width: float, height: float, layout: str | None = "constrained") -> "Figure":
    """Return an empty figure.

    width, height: size in inches. layout: matplotlib's layout engine, or None if axes are positioned explicitly.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=RESOLUTION, facecolor="white", layout=layout)  # type: ignore[arg-type]
    FigureCanvasAgg(figure)
    return figure


def axes_in_inches(width: float, height: float) -> "tuple[Figure, Axes]":
    """Return an empty figure, and invisible axes over all of it, in inches from the upper left corner."""
    figure = new_figure(width, height, layout=None)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set(xlim=(0, width), ylim=(height, 0))
    return figure, axes


def draw_title(axes: "Axes", title: str, left: float, middle: float) -> None:
    """Draw the title of a picture. left, middle: its position in the units of the axes."""
    axes.text(left, middle, title, fontsize=12, color=INK, va="center", parse_math=False)


def save(figure: "Figure", *paths: Path) -> None:
    """Write a figure to files, as SVG or, with any other suffix than `.svg`, as PNG."""
    for path, content in zip(paths, render(figure, *(path.suffix == ".svg" for path in paths)), strict=True):
        atomic_write(path, content)


def render(figure: "Figure", *as_svg: bool) -> list[bytes]:
    """Return a figure in one format after the other, as SVG or as PNG."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    texts = figure.findobj(Text)
    families = find_fonts("".join(text.get_text() for text in texts if isinstance(text, Text))).families
    for text in texts:
        text.set_fontfamily([*families, "sans-serif"])
    if figure.get_layout_engine() is not None:
        with ignore_missing_glyphs():
            figure.draw_without_rendering()
        figure.set_layout_engine("none")  # a second layout would move the axes by some pixels
    canvas: Any = FigureCanvasAgg(figure)  # matplotlib's method has no types
    contents = []
    for is_svg in as_svg:
        buffer = BytesIO()
        with ignore_missing_glyphs(), matplotlib.rc_context(_SVG_SETTINGS):
            if is_svg:
                figure.savefig(buffer, format="svg", metadata={"Date": None})
            else:
                canvas.print_png(buffer)  # `savefig` would draw the picture twice
        contents.append(buffer.getvalue())
    return contents


def draw_frame(axes: "Axes") -> None:
    """Draw a thin grey frame around a heat map."""
    for spine in axes.spines.values():
        spine.set_color(GRID)
        spine.set_linewidth(0.8)
