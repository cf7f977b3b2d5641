"""Detects numbers that differ between a source and its translation."""

import unicodedata
from collections import Counter

import regex

_NUMBER = regex.compile(r"\p{Nd}+(?:[.,:'’\u00A0\u202F]\p{Nd}+)*")
_RUN = regex.compile(r"\p{Nd}+")
_WITH_BLANKS = regex.compile(r"(?<!\p{Nd})\p{Nd}{1,3}(?: \p{Nd}{3})+(?!\p{Nd})")
_SPELLED = 20
"""Numbers up to this one are often spelled out on one side only."""

_HALF_A_DAY = 12


def changed_numbers(source: str, output: str) -> str | None:
    """Return the source's numbers that are missing from the output, joined by commas; None if no number is missing.

    Numbers are compared by their digits: `1,000.5`, `1.000,5` and `1 000,5` are the same. A missing number larger than
    20 is reported; a smaller one only if the output has another number that the source doesn't have, since it may be
    spelled out (`12`: `zwölf`). A number in the output alone is not reported: the source may have spelled it out. These
    differences are accepted: 12-hour for 24-hour times, years without their century, and final zeros that became a word
    (`3,000 million`: `3 Milliarden`).
    """
    if not any(map(str.isdecimal, source)):
        return None
    source_numbers, output_numbers = _numbers(source), _numbers(output)
    missing, extra = source_numbers - output_numbers, output_numbers - source_numbers
    if not missing or not _runs(source) - _runs(output):
        return None
    joined = "".join(_digits(output))
    lost = []
    for number in sorted(missing.elements(), key=lambda each: (-len(each), each)):
        other = next((each for each in extra if _same(number, each)), None)
        if other is not None:
            extra[other] -= 1
            extra += Counter()
        elif not (len(number) > 2 and number in joined):
            lost.append(number)
    if extra or any(int(number) > _SPELLED for number in lost):
        return ", ".join(lost) or None
    return None


def _numbers(text: str) -> Counter[str]:
    text = _WITH_BLANKS.sub(lambda match: match[0].replace(" ", ""), text)
    return Counter(map(_value, _NUMBER.findall(text)))


def _runs(text: str) -> Counter[str]:
    """Return the runs of digits, not joined by punctuation: `81(1)` equals `81.1`, and `31/10` equals `31.10.`"""
    return Counter(map(_value, _RUN.findall(text)))


def _value(digits: str) -> str:
    return "".join(_digits(digits)).lstrip("0") or "0"


def _digits(text: str) -> list[str]:
    return [str(unicodedata.decimal(character)) for character in text if character.isdecimal()]


def _same(number: str, other: str) -> bool:
    """Return whether one number is an acceptable translation of the other."""
    if number.rstrip("0") == other.rstrip("0") and max(len(number), len(other)) > 3:
        return True
    long, short = max(number, other, key=len), min(number, other, key=len)
    if len(long) == 4 and long[2:] == short:
        return True
    hour, minutes = (number[:-2], number[-2:]) if len(number) > 2 else (number, "")
    later, others = (other[:-2], other[-2:]) if len(other) > 2 else (other, "")
    if hour and later and (minutes or "00") == (others or "00"):
        return abs(int(hour) - int(later)) == _HALF_A_DAY or (int(hour) == int(later) and long == short + "00")
    return False
