"""`Languages`: the languages of a document and of its translation; their scripts, directions and regions."""

from functools import lru_cache
from typing import Literal, NamedTuple

from dragoman.text.languages.codes import base_language, parse_language_code
from dragoman.text.languages.usual_scripts import language_script

_EAST_ASIAN = frozenset(("zh", "ja", "ko"))
_COMPLEX = frozenset(
    "am ar bn bo ckb dv dz fa gu he hi km kn ks ku lo ml mr my ne or pa ps sa sd si ta te th ug ur yi".split()
)
"""Languages that word processors call complex."""

_RIGHT_TO_LEFT = frozenset(
    "Adlm Arab Aran Armi Avst Elym Gara Hebr Hatr Mand Mani Narb Nbat Nkoo Palm Phli Phlp Phnx Prti Rohg Samr "
    "Sarb Sogd Sogo Syrc Syre Syrj Syrn Thaa Yezi".split()
)
"""Scripts that run from right to left (Unicode's Bidi_Class R and AL), as ISO 15924 codes."""

Direction = Literal["ltr", "rtl"]


class Languages(NamedTuple):
    """The codes of the source and the target language, such as `en` or `pt-BR`; None if unknown."""

    source: str | None = None
    target: str | None = None

    @property
    def new_direction(self) -> Direction | None:
        """The direction of the translation if the source text runs the other way, else None.

        An unknown source language is treated as one that runs from left to right.
        """
        source, target = (None if code is None else direction(code) for code in self)
        return target if target is not None and target != (source or "ltr") else None


@lru_cache(maxsize=64)
def direction(code: str) -> Direction | None:
    """Return the direction of the usual script of a language, or of the script that its code contains."""
    script = language_script(code)
    return None if not script else "rtl" if script in _RIGHT_TO_LEFT else "ltr"


def opposite(direction: Direction) -> Direction:
    """Return the other direction."""
    return "ltr" if direction == "rtl" else "rtl"


UNKNOWN = Languages()


def script_group(code: str) -> Literal["western", "asian", "complex"]:
    """Return the group of scripts of a language. Word processors check the spelling of each group separately."""
    language = base_language(code)
    return "asian" if language in _EAST_ASIAN else "complex" if language in _COMPLEX else "western"


def with_region(code: str) -> tuple[str, str | None]:
    """Return a language and its region, such as `de` and `DE`, for formats that identify a language by both.

    A code without a region gets the region of most speakers (CLDR's likely subtags), None if that is unknown.
    """
    region = parse_language_code(code).likely_region
    return base_language(code), region if region is not None and region.isalpha() else None
