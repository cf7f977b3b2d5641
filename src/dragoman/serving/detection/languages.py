"""Language codes: matching what clients send to the codes that are served, and English names."""

from collections.abc import Iterable
from functools import lru_cache

from dragoman.base.packages import import_optional
from dragoman.serving.detection.language_names import NAMES

_OTHER_CODES = {"pb": "pt-br", "zt": "zh-hant"}
"""Codes that LibreTranslate's clients send, although no standard defines them."""

_NAMES = {code.lower(): name for code, name in NAMES.items()}

_LONGEST = 35
"""The longest code, in characters: RFC 5646, 4.4.1."""

_FARTHEST = 5
"""The largest distance, by langcodes, at which two codes match: regions and variants do, Danish and Norwegian (11) do
not."""


def known_code(code: str, known: Iterable[str]) -> str:
    """Return the known code that matches a code, or the code itself if none does.

    Tried in this order: the same code, ignoring case and with `_` for `-`; an equivalent code (`zh` and `zh-CN` for
    `zh-Hans`, `zt` for `zh-Hant`, `pb` for `pt-BR`, `no` for `nb`, `iw` for `he`, `deu` for `de`); the same language in
    another region (`de-AT` for `de`, `pt` for `pt-BR`). Another language never matches, nor does Chinese in the other
    script.
    """
    return closest_code(code, tuple(known)) or code


def closest_code(code: str, known: tuple[str, ...]) -> str | None:
    """Like `known_code`, but return None if no known code matches."""
    if code in known:
        return code
    plain = _plain(code)
    return _closest(plain, known) if 0 < len(plain) <= _LONGEST else None  # bounded, since results are cached


@lru_cache(maxsize=1024)
def _closest(plain: str, known: tuple[str, ...]) -> str | None:
    by_plain = {_plain(each): each for each in reversed(known)}
    if plain in by_plain:
        return by_plain[plain]
    wanted = _standard(plain)
    meant = {_standard(each): name for each, name in by_plain.items() if _is_tag(_standard(each))}
    if wanted in meant:
        return meant[wanted]
    if not _is_tag(wanted):
        return None
    # the language without a region is preferred to another region: pt-PT is pt rather than pt-BR
    language = language_of(wanted)
    if language in meant and language != "zh":
        return meant[language]
    found = import_optional("langcodes", "serve").closest_match(wanted, list(reversed(meant)), max_distance=_FARTHEST)[
        0
    ]
    return meant.get(found)


def name_of(code: str) -> str:
    """Return the English name of a language, or the code itself if it is unknown."""
    plain = _standard(_plain(code))
    if plain in _NAMES:
        return _NAMES[plain]
    language, _, rest = plain.partition("-")
    name = _NAMES.get(language) or _NAMES.get(closest_code(language, tuple(_NAMES)) or "", "")
    return f"{name} ({rest.upper()})" if name and rest else name or code


def language_of(code: str) -> str:
    """Return a code without script and region: `zh` for `zh-Hans`, `pt` for `pb`. An invalid code is unchanged."""
    plain = _standard(_plain(code))
    return str(import_optional("langcodes", "serve").get(plain).language) if _is_tag(plain) else code


def script_of(code: str) -> str:
    """Return the script of a language as ISO 15924 names it, such as `Hans` or `Latn`; empty if it is unknown."""
    plain = _standard(_plain(code))
    return str(import_optional("langcodes", "serve").get(plain).maximize().script or "") if _is_tag(plain) else ""


def has_script(code: str) -> bool:
    """Whether a code names its script itself, as `sr-Latn` does."""
    plain = _standard(_plain(code))
    return _is_tag(plain) and import_optional("langcodes", "serve").get(plain).script is not None


def _plain(code: str) -> str:
    return code.strip().replace("_", "-").lower()


def _standard(plain: str) -> str:
    return _OTHER_CODES.get(plain, plain)


def _is_tag(code: str) -> bool:
    return bool(import_optional("langcodes", "serve").tag_is_valid(code))
