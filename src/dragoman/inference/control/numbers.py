"""`NUMBER`: the pattern of a number with its signs and units, and functions that take such a number apart."""

from collections import Counter
from collections.abc import Iterator

import regex

from dragoman.text.words import WORD_CHARACTER

NO_BREAK_SPACES = "\u00a0\u2007\u2009\u202f"
"""Spaces at which lines are not broken, which separate numbers from their signs and units."""

_SPACE = rf"[ {NO_BREAK_SPACES}]?+"
_SIGNS = "[-+−±~≈≤≥]"
_UNITS = (
    "km/h|mph|[µμnmcdk]?m[²³]?|[µμnmk]?g|lbs?|oz|ft|ha|[mcdh]?[lL]|min|h|[mnµμ]s|[kMGT]?Wh|[mkMGT]?W|[mk]?V|m?Ah?"
    "|[kMGT]?Hz|[kKMGTP]i?B|[kMG]bit|[kMG]bps|dpi|ppi|p[xt]?|r?em|v[hw]|fps|rpm|dB|[hkM]?Pa|m?bar|[kM]?J|k?N|k?cal"
    "|Ω|K|x|×|D|G|k|M|bn|mn"
)
"""Units that many languages write directly after a number. Endings such as in `5th`, `80s` and `5pm` are translated."""

NUMBER = (
    rf"(?<!{WORD_CHARACTER})"
    rf"(?P<sign>(?<![^\s(\[{{„“\"'«¿¡/]){_SIGNS}(?=\p{{Nd}}|(?:[A-Z]{{1,3}})?\p{{Sc}}))?+"
    rf"(?P<before>(?:[A-Z]{{1,3}}(?=\p{{Sc}}))?+\p{{Sc}}{_SPACE}[-−]?+|(?:№|§§?|¶){_SPACE}|(?<!&)#)?+"
    rf"(?P<digits>\p{{Nd}}++(?:[.,:/'’x×\u00A0\u202F]\p{{Nd}}++)*+\p{{No}}*+)"
    rf"(?P<after>{_SPACE}(?:[%‰‱](?![\p{{L}}\p{{Nd}}_%])|\p{{Sc}}(?![\p{{L}}\p{{Nd}}_])|°(?:{_SPACE}[CFK]\b)?+|[′″])"
    rf"|(?:[{NO_BREAK_SPACES}]?+(?:{_UNITS})|\+)(?!{WORD_CHARACTER}))?+"
    rf"(?!{WORD_CHARACTER})"
)
"""Pattern for `regex.V1` of a number with its signs and units, such as `−5`, `$5`, `5 %`, `§ 5`, `5km` and `16:9`."""

_NUMBER = regex.compile(NUMBER, regex.V1)
_WORDS = {
    "%": r"per ?cent|pro[zs]ent|pour ?cent|por ?cien|процент|відсот",
    "€": r"eur|евро|євро",
    "$": r"dollar|dólar|доллар|долар",
    "£": r"pound|pfund|livre|libra|sterl|фунт",
    "¥": r"yen|yuan|иен|юан",
}
"""The words in which translations may spell a sign out, as patterns of their first letters."""


def digits_of(text: str) -> str:
    """Return a number without its signs and units. Any other text is returned unchanged."""
    match = _NUMBER.fullmatch(text)
    return text if match is None else match["digits"]


def loses_sign(source: str, translation: str) -> bool:
    """Return whether a translation lacks a sign or a unit of a number of its source, as a sign or as a word."""
    required = Counter(_signs_of(source))
    return any(_count(sign, translation) < count for sign, count in required.items())


def _signs_of(text: str) -> Iterator[str]:
    """Yield the signs and units of all numbers of a text, such as `-`, `$` and `km`."""
    for match in _NUMBER.finditer(text):
        sign, before, after = match["sign"], match["before"], match["after"]
        if sign is not None:
            yield sign.replace("−", "-")
        if before is not None:
            yield before.strip(_STRIPPED)
        if after is not None:
            yield from after.split()  # also of ° C


_STRIPPED = " -−ABCDEFGHIJKLMNOPQRSTUVWXYZ" + NO_BREAK_SPACES


def _count(sign: str, text: str) -> int:
    """Return the number of times that a text contains a sign, a word for it, or a unit."""
    if sign == "-":
        return len(regex.findall("[-−–]", text))
    if sign.isalpha():
        return len(regex.findall(rf"(?<!\p{{L}}){regex.escape(sign)}(?!\p{{L}})", text))
    words = _WORDS.get(sign)
    return text.count(sign) + (0 if words is None else len(regex.findall(words, text, regex.IGNORECASE)))
