"""The text of pictures: fonts that contain its characters, its width, shortened labels, and lines of words."""

import unicodedata
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from dragoman.figures.style import DEFAULT_FONT
from dragoman.text.pieces import readable

if TYPE_CHECKING:
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.font_manager import FontEntry, FontProperties

_MAX_LENGTH = 24
"""Usual maximum number of characters of a label."""

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
    from matplotlib import font_manager

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


def shorten_token(token: str, length: int = _MAX_LENGTH) -> str:
    """Return a token as a label of at most `length` characters, with control characters made visible."""
    return shorten_text(readable(token.encode("utf-8", "surrogatepass")), length)


def shorten_text(text: str, length: int = _MAX_LENGTH) -> str:
    """Return a text of at most `length` characters, with an ellipsis for the rest."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def minus_sign(number: str) -> str:
    """Return a number with a minus sign instead of a hyphen."""
    return number.replace("-", "−")


def word_lines(
    words: Sequence[str],
    values: Sequence[float],
    width: Callable[[str, float], float],
    *,
    limit: float,
    gap: float,
    length: int,
) -> Iterator[list[tuple[str, float, float]]]:
    """Yield the words of each line as they are shown, with their values and widths in inches.

    width: returns the width of a word with its value. limit: maximum width of a line. gap: space between words. length:
    maximum number of characters of a word.
    """
    line: list[tuple[str, float, float]] = []
    used = 0.0
    for word, value in zip(words, values, strict=True):
        shown = shorten_token(word, length)
        size = width(shown, value)
        if line and used + size > limit:
            yield line
            line, used = [], 0.0
        line.append((shown, value, size))
        used += size + gap
    if line:
        yield line


@cache
def _other_fonts() -> tuple[tuple[str, str], ...]:
    """Return the family and file of all installed upright fonts except the default font, sans-serif fonts first."""
    from matplotlib import font_manager

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
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(map(chr, FT2Font(file).get_charmap()))
    except (OSError, RuntimeError):  # a font without outlines, such as a bitmap emoji font
        return frozenset()


@cache
def _renderer() -> "RendererAgg":
    from matplotlib.backends.backend_agg import RendererAgg

    return RendererAgg(1, 1, _POINTS_PER_INCH)  # type: ignore[no-untyped-call]


@lru_cache(maxsize=64)
def _properties(points: float, families: tuple[str, ...]) -> "FontProperties":
    from matplotlib.font_manager import FontProperties

    return FontProperties(family=list(families), size=points)
