"""Numbers that changed."""

import unicodedata
from collections import Counter

import regex

from dragoman.translation.guard.finding import Finding

_NUMBER = regex.compile(r"\p{Nd}+(?:[.,:'’\u00A0\u202F]\p{Nd}+)*")
_RUN = regex.compile(r"\p{Nd}+")
_WITH_BLANKS = regex.compile(r"(?<!\p{Nd})\p{Nd}{1,3}(?: \p{Nd}{3})+(?!\p{Nd})")
_SPELLED = 20
"""Up to here, numbers are often written as words, or as words where they were not."""

_HALF_A_DAY = 12


def changed_numbers(source: str, output: str) -> Finding | None:
    """The source's numbers that the output lacks, where that means something.

    A number is its digits: `1,000.5`, `1.000,5` and `1 000,5` are the same. One that is missing and is larger than 20
    is found; a smaller one only where the output has another number that the source does not have, since it may be
    spelled (`12`: `zwölf`). A number that is only in the output is not found: the source may have spelled it.
    Accepted are hours of 12 as hours of 24, years without their century, and zeros at the end that became a word
    (`3,000 million`: `3 Milliarden`).
    """
    if not any(map(str.isdecimal, source)):
        return None
    given, written = _numbers(source), _numbers(output)
    missing, more = given - written, written - given
    if not missing or not _runs(source) - _runs(output):
        return None
    joined = "".join(_digits(output))
    lost = []
    for number in sorted(missing.elements(), key=lambda each: (-len(each), each)):
        other = next((each for each in more if _same(number, each)), None)
        if other is not None:
            more[other] -= 1
            more += Counter()
        elif not (len(number) > 2 and number in joined):
            lost.append(number)
    if more or any(int(number) > _SPELLED for number in lost):
        return Finding("numbers", ", ".join(lost)) if lost else None
    return None


def _numbers(text: str) -> Counter[str]:
    text = _WITH_BLANKS.sub(lambda match: match[0].replace(" ", ""), text)
    return Counter(map(_value, _NUMBER.findall(text)))


def _runs(text: str) -> Counter[str]:
    """The same where no sign joins digits: `81(1)` is `81.1`, and `31/10` is `31.10.`"""
    return Counter(map(_value, _RUN.findall(text)))


def _value(digits: str) -> str:
    return "".join(_digits(digits)).lstrip("0") or "0"


def _digits(text: str) -> list[str]:
    return [str(unicodedata.decimal(character)) for character in text if character.isdecimal()]


def _same(number: str, other: str) -> bool:
    """Whether translators write one for the other."""
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
