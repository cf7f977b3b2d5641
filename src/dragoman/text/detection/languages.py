"""Language codes: matches the codes that clients send with those that are served, and returns English names."""

from collections.abc import Iterable
from functools import lru_cache

import langcodes

from dragoman.text.detection.language_names import NAMES
from dragoman.text.writing_systems import language_script

_NON_STANDARD_CODES = {"pb": "pt-br", "zt": "zh-hant"}
"""Codes that LibreTranslate's clients send, although no standard defines them."""

_NAMES = {code.lower(): name for code, name in NAMES.items()}

_MAX_CODE_LENGTH = 35
"""The maximum length of a code in characters (RFC 5646, 4.4.1)."""

_MAX_DISTANCE = 5
"""The maximum langcodes distance of matching codes. Regions and variants match; Danish and Norwegian (11) do not."""


def match_code(code: str, known: Iterable[str]) -> str:
    """Return the known code that matches a code, or the code itself if no known code matches.

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
    normalised = _normalise(code)
    return (
        _closest(normalised, known) if 0 < len(normalised) <= _MAX_CODE_LENGTH else None
    )  # bounded, since results are cached


@lru_cache(maxsize=1024)
def _closest(normalised: str, known: tuple[str, ...]) -> str | None:
    by_normalised = {_normalise(code): code for code in reversed(known)}
    if normalised in by_normalised:
        return by_normalised[normalised]
    standard = _standardise(normalised)
    known_standard = {_standardise(code): name for code, name in by_normalised.items() if _is_tag(_standardise(code))}
    if standard in known_standard:
        return known_standard[standard]
    if not _is_tag(standard):
        return None
    # a code without a region is preferred to another region: pt-PT matches pt rather than pt-BR
    language = base_language(standard)
    if language in known_standard and language != "zh":
        return known_standard[language]
    match = langcodes.closest_match(standard, list(reversed(known_standard)), max_distance=_MAX_DISTANCE)[0]
    return known_standard.get(match)


def language_name(code: str) -> str:
    """Return the English name of a language, or the code itself if it is unknown."""
    normalised = _standardise(_normalise(code))
    if normalised in _NAMES:
        return _NAMES[normalised]
    language, _, rest = normalised.partition("-")
    name = _NAMES.get(language) or _NAMES.get(closest_code(language, tuple(_NAMES)) or "", "")
    return f"{name} ({rest.upper()})" if name and rest else name or code


def base_language(code: str) -> str:
    """Return a code without script and region: `zh` for `zh-Hans`, `pt` for `pb`. An invalid code is unchanged."""
    normalised = _standardise(_normalise(code))
    return str(langcodes.get(normalised).language) if _is_tag(normalised) else code


def served_script(code: str) -> str:
    """Return the script of a code as `language_script` does, also for LibreTranslate's codes, such as `zt`."""
    return language_script(_standardise(_normalise(code)))


def has_script(code: str) -> bool:
    """Return whether a code contains a script, as `sr-Latn` does."""
    normalised = _standardise(_normalise(code))
    return _is_tag(normalised) and langcodes.get(normalised).script is not None


def _normalise(code: str) -> str:
    return code.strip().replace("_", "-").lower()


def _standardise(normalised: str) -> str:
    return _NON_STANDARD_CODES.get(normalised, normalised)


def _is_tag(code: str) -> bool:
    return bool(langcodes.tag_is_valid(code))
