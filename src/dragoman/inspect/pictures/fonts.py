"""Which installed fonts have the characters of a text, and how wide it is in them."""

import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import NamedTuple

from matplotlib import font_manager
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.font_manager import FontEntry, FontProperties
from matplotlib.ft2font import FT2Font

FIRST = "DejaVu Sans"
"""Comes with matplotlib."""

_POINTS = 72  # an inch

# Boxes with a code, and matplotlib's own fonts for formulae, whose characters stand at other places than Unicode's.
_NOT_FOR_TEXT = ("Last Resort", "cm", "STIXNonUnicode", "STIXSize")


class Coverage(NamedTuple):
    """families: fonts by name, in the order in which a character is looked for; missing: what none of them has."""

    families: tuple[str, ...]
    missing: frozenset[str]


@lru_cache(maxsize=64)
def covering(text: str) -> Coverage:
    """The fonts that `text` needs. Others than the first are opened only for what that one lacks."""
    families = [FIRST]
    missing = {character for character in text if character.isprintable()} - _characters(font_manager.findfont(FIRST))
    for family, file in _others():
        if not missing:
            break
        if has := missing & _characters(file):
            families.append(family)
            missing -= has
    return Coverage(tuple(families), frozenset(missing))


@contextmanager
def boxes() -> Iterator[None]:
    """While open, matplotlib draws boxes for characters that no font has without a warning of each."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        yield


def inches(text: str, points: float) -> float:
    """How wide a line of text is at this size; a character that no font has counts as a square where it is wide."""
    with boxes():
        properties = _properties(points, covering(text).families)
        width: float = _renderer().get_text_width_height_descent(text, properties, False)[0]  # type: ignore[no-untyped-call]
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return max(width / _POINTS, wide * points / _POINTS)


@cache
def _others() -> tuple[tuple[str, str], ...]:
    """Family and file of every other upright font that is installed, those without serifs first."""
    entries: list[FontEntry] = font_manager.fontManager.ttflist
    upright = {
        each.name: each.fname
        for each in entries
        if each.style == "normal"
        and each.weight in (400, "normal", "regular")
        and each.name != FIRST
        and not each.name.startswith(_NOT_FOR_TEXT)
    }
    return tuple(sorted(upright.items(), key=lambda item: ("Sans" not in item[0], item[0])))


@cache
def _characters(file: str) -> frozenset[str]:
    try:
        return frozenset(map(chr, FT2Font(file).get_charmap()))
    except (OSError, RuntimeError):  # a font without outlines, such as one of coloured pictures
        return frozenset()


@cache
def _renderer() -> RendererAgg:
    return RendererAgg(1, 1, _POINTS)  # type: ignore[no-untyped-call]


@lru_cache(maxsize=64)
def _properties(points: float, families: tuple[str, ...]) -> FontProperties:
    return FontProperties(family=list(families), size=points)
