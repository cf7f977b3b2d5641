"""Lines of subtitles: a translation in as many as there were, of like length."""

import re
from collections.abc import Iterator, Sequence

USUAL = 42
"""Characters of a line that most guides for subtitles in European languages allow."""


def wrapped(text: str, lines: int, end: str, hidden: re.Pattern[str]) -> str:
    """The text in the fewest lines that hold it, or in as many as allowed; the longest of them as short as can be.

    lines: how many it may have; end: what divides them; hidden: what of the text is not shown. Words stay whole.
    """
    words = list(_words(text, hidden))
    if lines == 1 or not words:
        return text
    lengths = [len(hidden.sub("", word)) for word in words]
    count = next((number for number in range(1, lines) if _fits(lengths, USUAL, number)), lines)
    low, high = max(lengths), sum(lengths) + len(words) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _fits(lengths, middle, count) else (middle + 1, high)
    head = text[: len(text) - len(text.lstrip())]
    tail = text[len(text.rstrip()) :]
    inked = end.join(" ".join(words[begin:stop]) for begin, stop in _lines(lengths, low))
    return _blanks(head) + inked + _blanks(tail)


def _blanks(text: str) -> str:
    """Without ends of lines."""
    return re.sub(r"[\r\n]+", "", text)


def _words(text: str, hidden: re.Pattern[str]) -> Iterator[str]:
    """What stands between blanks; a blank within what is hidden is none."""
    word = ""
    at = 0
    for found in [*hidden.finditer(text), None]:
        begin, end = (len(text), len(text)) if found is None else found.span()
        first, *others = re.split(r"[ \t\r\n]+", text[at:begin])
        word += first
        for other in others:
            if word:
                yield word
            word = other
        word += text[begin:end]
        at = end
    if word:
        yield word


def _fits(lengths: Sequence[int], width: int, count: int) -> bool:
    return max(lengths) <= width and sum(1 for _ in _lines(lengths, width)) <= count


def _lines(lengths: Sequence[int], width: int) -> Iterator[tuple[int, int]]:
    """Which words stand in each line, as many as the width allows."""
    begin = used = 0
    for place, length in enumerate(lengths):
        if place > begin and used + 1 + length > width:
            yield begin, place
            begin, used = place, length
        else:
            used += length + (place > begin)
    yield begin, len(lengths)
