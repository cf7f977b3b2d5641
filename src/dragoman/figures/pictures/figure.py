"""Colours, fonts and file output shared by all pictures."""

import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.font_manager import FontEntry, FontProperties
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text

from dragoman.base.files import atomic_write
from dragoman.figures import style
from dragoman.figures.style import DEFAULT_FONT, GRID
from dragoman.text.pieces import readable

SIGNED = LinearSegmentedColormap.from_list("signed", style.SIGNED)
SHADES = LinearSegmentedColormap.from_list("shades", style.SHADES)
GREYS = LinearSegmentedColormap.from_list("greys", style.GREYS)

DASHES: tuple[Any, ...] = ("solid", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 1.5, 1, 1.5)))
MARKERS = ("s", "o", "^", "v", "D", "P")
"""Dashes and points of lines, so that lines can be distinguished without colours."""

_MAX_LENGTH = 24
"""Usual maximum number of characters of a label."""

RESOLUTION = 140
"""Resolution of a PNG in pixels per inch."""

_SVG_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",  # keep text searchable, and let the browser choose fonts for any script
    "svg.hashsalt": "dragoman",  # make the output deterministic
    "font.sans-serif": [DEFAULT_FONT],  # in an SVG, the browser's sans-serif font is the fallback
}


def new_figure(width: float, height: float, layout: str | None = "constrained") -> Figure:
    """Return an empty figure.

    width, height: size in inches. layout: matplotlib's layout engine, or None if axes are positioned explicitly.
    """
    figure = Figure(figsize=(width, height), dpi=RESOLUTION, facecolor="white", layout=layout)  # type: ignore[arg-type]
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, *paths: Path) -> None:
    """Write a figure to files, as PNG or SVG according to the suffix."""
    texts = figure.findobj(Text)
    families = find_fonts("".join(text.get_text() for text in texts if isinstance(text, Text))).families
    for text in texts:
        text.set_fontfamily([*families, "sans-serif"])
    with ignore_missing_glyphs():
        figure.draw_without_rendering()
    figure.set_layout_engine("none")  # a second layout would move the axes by some pixels
    for path in paths:
        buffer = BytesIO()
        with ignore_missing_glyphs(), matplotlib.rc_context(_SVG_SETTINGS):
            if path.suffix == ".svg":
                figure.savefig(buffer, format="svg", metadata={"Date": None})
            else:
                figure.savefig(buffer, format="png")
        atomic_write(path, buffer.getvalue())


def shorten_token(token: str, length: int = _MAX_LENGTH) -> str:
    """Return a token as a label of at most `length` characters, with control characters made visible."""
    return shorten_text(readable(token.encode("utf-8", "surrogatepass")), length)


def shorten_text(text: str, length: int = _MAX_LENGTH) -> str:
    """Return a text of at most `length` characters, with an ellipsis for the rest."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def minus_sign(number: str) -> str:
    """Return a number with a minus sign instead of a hyphen."""
    return number.replace("-", "−")


def draw_frame(axes: Axes) -> None:
    """Draw a thin grey frame around a heat map."""
    for spine in axes.spines.values():
        spine.set_color(GRID)
        spine.set_linewidth(0.8)


_POINTS_PER_INCH = 72

# A font with placeholder glyphs only, and matplotlib's formula fonts, whose characters have non-Unicode code points.
_EXCLUDED_FONTS = ("Last Resort", "cm", "STIXNonUnicode", "STIXSize")


class FontCoverage(NamedTuple):
    """The fonts for a text.

    families: font names in order of preference. missing: characters that none of these fonts contains.
    """

    families: tuple[str, ...]
    missing: frozenset[str]


@lru_cache(maxsize=64)
def find_fonts(text: str) -> FontCoverage:
    """Find fonts for all characters of `text`.

    Other fonts are opened only for characters that the default font does not contain.
    """
    families = [DEFAULT_FONT]
    printable = {character for character in text if character.isprintable()}
    missing = printable - _characters(font_manager.findfont(DEFAULT_FONT))
    for family, file in _other_fonts():
        if not missing:
            break
        if covered := missing & _characters(file):
            families.append(family)
            missing -= covered
    return FontCoverage(tuple(families), frozenset(missing))


@contextmanager
def ignore_missing_glyphs() -> Iterator[None]:
    """Suppress matplotlib's warnings about characters that no font contains, which are drawn as boxes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        yield


def text_width(text: str, points: float) -> float:
    """Return the width of a line of text in inches. Wide characters are at least as wide as the font size.

    points: font size.
    """
    with ignore_missing_glyphs():
        properties = _properties(points, find_fonts(text).families)
        width: float = _renderer().get_text_width_height_descent(text, properties, False)[0]  # type: ignore[no-untyped-call]
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return max(width / _POINTS_PER_INCH, wide * points / _POINTS_PER_INCH)


@cache
def _other_fonts() -> tuple[tuple[str, str], ...]:
    """Return the family and file of all installed upright fonts except the default font, sans-serif fonts first."""
    known = {each.fname for each in font_manager.fontManager.ttflist}
    for file in font_manager.findSystemFonts():  # some may have been installed after matplotlib saved its list
        if file not in known:
            with suppress(OSError, RuntimeError):
                font_manager.fontManager.addfont(file)
    entries: list[FontEntry] = font_manager.fontManager.ttflist
    upright = {
        each.name: each.fname
        for each in entries
        if each.style == "normal"
        and each.weight in (400, "normal", "regular")
        and each.name != DEFAULT_FONT
        and not each.name.startswith(_EXCLUDED_FONTS)
    }
    return tuple(sorted(upright.items(), key=lambda item: ("Sans" not in item[0], item[0])))


@cache
def _characters(file: str) -> frozenset[str]:
    try:
        return frozenset(map(chr, FT2Font(file).get_charmap()))
    except (OSError, RuntimeError):  # a font without outlines, such as a bitmap emoji font
        return frozenset()


@cache
def _renderer() -> RendererAgg:
    return RendererAgg(1, 1, _POINTS_PER_INCH)  # type: ignore[no-untyped-call]


@lru_cache(maxsize=64)
def _properties(points: float, families: tuple[str, ...]) -> FontProperties:
    return FontProperties(family=list(families), size=points)
