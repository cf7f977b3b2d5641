"""`Languages`: the languages of a document and of its translation; their scripts and regions for word processors."""

from typing import Literal, NamedTuple

from dragoman.text.languages.codes import base_language, parse_language_code

_EAST_ASIAN = frozenset(("zh", "ja", "ko"))
_COMPLEX = frozenset(
    "am ar bn bo ckb dv dz fa gu he hi km kn ks ku lo ml mr my ne or pa ps sa sd si ta te th ug ur yi".split()
)
"""Languages that word processors call complex."""


class Languages(NamedTuple):
    """The codes of the source and the target language, such as `en` or `pt-BR`; None if unknown."""

    source: str | None = None
    target: str | None = None


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
