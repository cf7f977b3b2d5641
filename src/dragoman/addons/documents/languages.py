"""`Languages`: the languages of a document and of its translation; comparison and regions of language codes."""

import re
from typing import Literal, NamedTuple

from dragoman.base.packages import import_optional

_NORWEGIAN = ("nb", "nn", "no")
_CODES = frozenset(
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz "
    "ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik "
    "io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml "
    "mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd "
    "se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi "
    "vo wa wo xh yi yo za zh zu".split()
)
"""The two-letter codes of ISO 639."""

_CODE = re.compile(r"([a-z]{2})(?:[_-](?:[A-Za-z]{2}|[A-Z][a-z]{3}))*|[a-z]{3}[_-][A-Z][a-z]{3}")


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


def subtags(code: str) -> list[str]:
    """Return the parts of a language code: `pt-BR`, `pt_BR.UTF-8` and `pt_BR@latin` all start with `pt`, `BR`."""
    return code.replace("_", "-").partition(".")[0].partition("@")[0].strip().split("-")


def is_code(text: str) -> bool:
    """Whether a text is a language code of two letters, or of three with a script: `de`, `pt_BR`, `eng_Latn`."""
    found = _CODE.fullmatch(text)
    return found is not None and (found[1] is None or found[1] in _CODES)


def is_same_language(one: str, other: str) -> bool:
    """Whether two codes name the same language, in any region or script. The codes for Norwegian are equal."""
    first, second = (subtags(code)[0].lower() for code in (one, other))
    return first == second or (first in _NORWEGIAN and second in _NORWEGIAN)


def script_group(code: str) -> Literal["western", "asian", "complex"]:
    """Return the group of scripts of a language. Word processors check the spelling of each group separately."""
    language = subtags(code)[0].lower()
    return "asian" if language in _EAST_ASIAN else "complex" if language in _COMPLEX else "western"


def with_region(code: str) -> tuple[str, str | None]:
    """Return a language and its region, such as `de` and `DE`, for formats that identify a language by both.

    A code without a region gets the region of most speakers (CLDR's likely subtags), None if that is unknown.
    """
    language, *others = subtags(code)
    language = language.lower()
    for each in others:
        if len(each) == 2 and each.isalpha():
            return language, each.upper()
    likely = import_optional("babel.core", "documents", "babel").get_global("likely_subtags")
    found = subtags(likely.get("_".join([language, *others]), "") or likely.get(language, ""))
    return language, next((each for each in found[1:] if len(each) == 2), None)
