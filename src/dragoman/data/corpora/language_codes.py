"""Comparison of language codes: BCP 47 (en-US), POSIX (en_US.UTF-8), and ISO 639-2 and 639-3 (eng)."""

import re
from functools import lru_cache
from typing import NamedTuple

import langcodes

_SAME = {"no": "nb"}
"""Codes of languages that are almost always used for the other one, but that langcodes does not replace."""

_POSIX_SCRIPTS = {"latin": "Latn", "cyrillic": "Cyrl", "devanagari": "Deva", "iqtelif": "Latn"}


class LanguageCode(NamedTuple):
    """A parsed code. script, region: None if the code does not state them. likely_script: usual for this code."""

    language: str
    script: str | None = None
    region: str | None = None
    likely_script: str | None = None


@lru_cache(maxsize=1 << 10)
def parse_language_code(code: str) -> LanguageCode:
    """Return the parts of a code in canonical form. A code that is not in any standard is a language in lower case."""
    text, _, modifier = code.strip().partition("@")
    text = text.partition(".")[0].replace("_", "-")
    if modifier.lower() in _POSIX_SCRIPTS:
        text = re.sub("^[^-]+", rf"\g<0>-{_POSIX_SCRIPTS[modifier.lower()]}", text)
    try:
        found = langcodes.Language.get(langcodes.standardize_tag(text, macro=True))
        likely = found.maximize()
    except ValueError:
        return LanguageCode(text.lower())
    language = found.language or text.lower()
    return LanguageCode(_SAME.get(language, language), found.script, found.territory, likely.script)


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
