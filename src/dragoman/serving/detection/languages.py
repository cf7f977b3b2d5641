"""Codes of languages: which of those that are there a client means, and what people call them."""

from collections.abc import Iterable
from functools import lru_cache

from dragoman.base.packages import import_optional
from dragoman.serving.detection.language_names import NAMES

_OTHER_CODES = {"pb": "pt-br", "zt": "zh-hant"}
"""What LibreTranslate's clients send, and no standard knows."""

_NAMES = {code.lower(): name for code, name in NAMES.items()}

_LONGEST = 35
"""Characters of a code: RFC 5646, 4.4.1."""

_FARTHEST = 5
"""How far one language may be from another to be meant by it, by langcodes: regions and variants are, Danish is not
Norwegian (11)."""


def known_code(code: str, known: Iterable[str]) -> str:
    """Which of the known codes is meant; the code itself where none is.

    The same one, in any case and with `_` for `-`; else the same in other words (`zh`, `zh-CN` for `zh-Hans`, `zt` for
    `zh-Hant`, `pb` for `pt-BR`, `no` for `nb`, `iw` for `he`, `deu` for `de`); else the same language of another region
    (`de-AT` for `de`, `pt` for `pt-BR`). Never another language, nor Chinese in the other script.
    """
    return closest_code(code, tuple(known)) or code


def closest_code(code: str, known: tuple[str, ...]) -> str | None:
    """As `known_code`; None where none is meant."""
    if code in known:
        return code
    plain = _plain(code)
    return _closest(plain, known) if 0 < len(plain) <= _LONGEST else None  # before it is remembered


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
    # the language alone goes before another region's: pt-PT is pt rather than pt-BR
    language = language_of(wanted)
    if language in meant and language != "zh":
        return meant[language]
    found = import_optional("langcodes", "serve").closest_match(wanted, list(reversed(meant)), max_distance=_FARTHEST)[
        0
    ]
    return meant.get(found)


def name_of(code: str) -> str:
    """Its English name; of a code that nobody knows, the code."""
    plain = _standard(_plain(code))
    if plain in _NAMES:
        return _NAMES[plain]
    language, _, rest = plain.partition("-")
    name = _NAMES.get(language) or _NAMES.get(closest_code(language, tuple(_NAMES)) or "", "")
    return f"{name} ({rest.upper()})" if name and rest else name or code


def language_of(code: str) -> str:
    """The language alone, without script and region: `zh` of `zh-Hans`, `pt` of `pb`; what is no code stays."""
    plain = _standard(_plain(code))
    return str(import_optional("langcodes", "serve").get(plain).language) if _is_tag(plain) else code


def script_of(code: str) -> str:
    """What it is written in, as ISO 15924 names it: `Hans`, `Latn`; empty where that is not known."""
    plain = _standard(_plain(code))
    return str(import_optional("langcodes", "serve").get(plain).maximize().script or "") if _is_tag(plain) else ""


def has_script(code: str) -> bool:
    """Whether the code itself says what it is written in, as `sr-Latn` does."""
    plain = _standard(_plain(code))
    return _is_tag(plain) and import_optional("langcodes", "serve").get(plain).script is not None


def _plain(code: str) -> str:
    return code.strip().replace("_", "-").lower()


def _standard(plain: str) -> str:
    return _OTHER_CODES.get(plain, plain)


def _is_tag(code: str) -> bool:
    return bool(import_optional("langcodes", "serve").tag_is_valid(code))
