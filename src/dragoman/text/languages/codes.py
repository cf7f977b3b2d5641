"""Language codes: BCP 47 (en-US), POSIX (en_US.UTF-8), ISO 639-2 and 639-3 (eng), and how they are compared.

All comparisons of codes in dragoman are made here. They differ in what they ask: `is_same_language` whether two codes
name one language, `match_language_codes` whether a text in a file is what the settings request, and `closest_code`
which of the known codes a client means.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

_SAME = {"no": "nb"}
"""Codes of languages that are almost always used for the other one, but that langcodes does not replace."""

_NON_STANDARD = {"pb": "pt-BR", "zt": "zh-Hant"}
"""Codes that LibreTranslate's clients send, although no standard defines them."""

_POSIX_SCRIPTS = {"latin": "Latn", "cyrillic": "Cyrl", "devanagari": "Deva", "iqtelif": "Latn"}
_NO_LANGUAGE = frozenset(("mis", "mul", "und", "zxx"))
"""Codes of ISO 639 that do not denote a language."""

_LANGUAGE = re.compile(r"(?!q[a-t][a-z])[a-z]{2,3}")
"""Matches the code of a language; qaa to qtz are reserved for private use."""

_WRITTEN = re.compile(r"([a-z]{2})(?:[_-](?:[A-Za-z]{2}|[A-Z][a-z]{3}))*|([a-z]{3})[_-][A-Z][a-z]{3}")

_UNKNOWN_REGION = "ZZ"

_MAX_CODE_LENGTH = 35
"""The maximum length of a code in characters (RFC 5646, 4.4.1)."""

_MAX_DISTANCE = 5
"""The maximum langcodes distance of matching codes. Regions and variants match; Danish and Norwegian (12) do not."""


class LanguageCode(NamedTuple):
    """A parsed code.

    language: the shortest ISO 639 code, with the usual one for codes of the same language (`de` for `deu`, `zh` for
    `cmn`, `nb` for `no`); a code of no standard in lower case. script, region: None if the code does not state them; a
    script that nearly all texts of the language have, such as that of `de-Latn`, is None, too (IANA's Suppress-Script).
    likely_script, likely_region: the stated ones, or the usual ones by CLDR's likely subtags; None if unknown.
    stated_script: the script in the code, also if it is the usual one. is_known: whether ISO 639 has the language.
    """

    language: str
    script: str | None = None
    region: str | None = None
    likely_script: str | None = None
    likely_region: str | None = None
    stated_script: str | None = None
    is_known: bool = False


def parse_language_code(code: str) -> LanguageCode:
    """Return the parts of a code in canonical form.

    Of a code whose further parts are invalid, such as `deu_1`, only the language is used.
    """
    text = bcp47(code)
    return _parse(text) if len(text) <= _MAX_CODE_LENGTH else LanguageCode(text.lower())


@lru_cache(maxsize=1 << 10)
def _parse(text: str) -> LanguageCode:
    from langcodes import Language, standardize_tag  # slow to import

    first = text.partition("-")[0].lower()
    for tag in (text, first) if _is_language(first) else (text,):
        try:
            found, stated = Language.get(standardize_tag(tag, macro=True)), Language.get(tag).script
        except ValueError:
            continue
        language = found.language or text.lower()
        if not _is_language(language):
            return LanguageCode(language, found.script, found.territory)
        if stated is not None and not Language.make(script=stated).is_valid():
            stated = None
        likely = Language.make(language, script=stated, territory=found.territory).maximize()
        region = None if likely.territory == _UNKNOWN_REGION else likely.territory
        language = _SAME.get(language, language)
        return LanguageCode(language, found.script, found.territory, likely.script, region, stated, True)
    return LanguageCode(text.lower())


def is_same_language(one: str, other: str) -> bool:
    """Return whether two codes name the same language, in any region or script.

    The two written languages of Norwegian, `nb` and `nn`, differ; `no` is `nb`.
    """
    return parse_language_code(one).language == parse_language_code(other).language


@lru_cache(maxsize=1 << 12)
def match_language_codes(requested: str, code: str) -> int | None:
    """Return how well a code in a file matches a requested code: 0 is best; None if it is another language.

    0: the same language, script and region. 1: the code also states a script or a region, such as en-US for en. 2: the
    requested code states more, such as en-US for en. Two different regions do not match, nor do two scripts, including
    those that are usual for the codes: zh-TW matches zh-Hant, but not zh-CN or zh.
    """
    wanted, found = parse_language_code(requested), parse_language_code(code)
    if wanted.language != found.language:
        return None
    if wanted[:3] == found[:3]:
        return 0
    if None not in (wanted.region, found.region) and wanted.region != found.region:
        return None
    if wanted.script is None and wanted.region is None:
        return 1
    if wanted.likely_script != found.likely_script:
        return None
    return 2 if found.script is None and found.region is None else 1


def match_code(code: str, known: Iterable[str]) -> str:
    """Return the known code that a client means by a code, or the code itself if no known code matches.

    The function tries, in this order, the same code, ignoring case and with `_` for `-`; an equivalent code (`zh` and
    `zh-CN` for `zh-Hans`, `zt` for `zh-Hant`, `pb` for `pt-BR`, `no` for `nb`, `iw` for `he`, `deu` for `de`); and the
    same language in another region (`de-AT` for `de`, `pt` for `pt-BR`). Different languages never match, and neither
    do the two scripts of Chinese.
    """
    return closest_code(code, tuple(known)) or code


def closest_code(code: str, known: tuple[str, ...]) -> str | None:
    """Return the known code that matches a code, as `match_code` does, or None if no known code matches."""
    if code in known:
        return code
    text = bcp47(code).lower()
    return _closest(text, known) if 0 < len(text) <= _MAX_CODE_LENGTH else None  # bounded, since results are cached


@lru_cache(maxsize=1024)
def _closest(text: str, known: tuple[str, ...]) -> str | None:
    import langcodes

    known_codes = {bcp47(code).lower(): code for code in reversed(known)}
    if text in known_codes:
        return known_codes[text]
    if not langcodes.tag_is_valid(text):
        return None
    tags = {tag: name for tag, name in known_codes.items() if langcodes.tag_is_valid(tag)}
    # a code without a region is preferred to another region: pt-PT matches pt rather than pt-BR
    language = base_language(text)
    if language in tags and language != "zh":
        return tags[language]
    match = langcodes.closest_match(text, list(reversed(tags)), max_distance=_MAX_DISTANCE)[0]
    return tags.get(match)


def base_language(code: str) -> str:
    """Return a code without script and region: `zh` for `zh-Hans`, `pt` for `pb`. An invalid code is unchanged."""
    import langcodes

    text = bcp47(code)
    return str(langcodes.get(text).language) if langcodes.tag_is_valid(text) else code


def is_language_code(text: str) -> bool:
    """Return whether a text that may be any word is a language code: one of two letters, or of three with a script.

    Such texts are extensions of files and keys of catalogues: `de`, `pt_BR`, `eng_Latn`. Nearly all words of three
    letters are codes of some language, and are not recognised.
    """
    found = _WRITTEN.fullmatch(text)
    return found is not None and _is_language(found[1] or found[2])


def bcp47(code: str) -> str:
    """Return the BCP 47 form of a code, such as `pt-BR` for `pt_BR.UTF-8` and `sr-Latn-RS` for `sr_RS@latin`.

    Codes of LibreTranslate's clients are replaced: `zh-Hant` for `zt`. Letters keep their case.
    """
    text, _, modifier = code.strip().partition("@")
    text = text.partition(".")[0].replace("_", "-")
    if modifier.lower() in _POSIX_SCRIPTS:
        text = re.sub("^[^-]+", rf"\g<0>-{_POSIX_SCRIPTS[modifier.lower()]}", text)
    return _NON_STANDARD.get(text.lower(), text)


@lru_cache(maxsize=1 << 10)
def _is_language(language: str) -> bool:
    import langcodes

    return (
        _LANGUAGE.fullmatch(language) is not None
        and language not in _NO_LANGUAGE
        and bool(langcodes.Language.get(language).is_valid())
    )
