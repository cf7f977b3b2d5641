"""Lines of subtitles: a translation in as many as there were, of like length."""

import re
from collections.abc import Iterator, Sequence

USUAL = 42
"""Characters of a line that most guides for subtitles in European languages allow."""

_LINE_END = re.compile(r"\r\n?|\n")
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)\]]*\Z")


def wrapped(text: str, before: str, hidden: re.Pattern[str]) -> str:
    """A text in the fewest lines that hold it, or in as many as `before` has; the longest as short as can be.

    Where each line of `before` ends a sentence, so does each of the text if they fit. before: what stood there; hidden:
    what of both is not shown. Words stay whole.
    """
    old = _LINE_END.split(before)
    words = list(_words(text, hidden))
    if len(old) == 1 or not words:
        return text
    shown = [hidden.sub("", word) for word in words]
    lengths = [len(word) for word in shown]
    ends = [place for place, word in enumerate(shown, 1) if _SENTENCE_END.search(word) or place == len(words)]
    lines = list(zip([0, *ends], ends, strict=False))
    sentences = len(lines) == len(old) and all(_SENTENCE_END.search(hidden.sub("", line).rstrip()) for line in old)
    if not sentences or any(not _fits(lengths[begin:stop], USUAL, 1) for begin, stop in lines):
        lines = list(_lines(lengths, _narrowest(lengths, len(old))))
    end = _LINE_END.search(before)
    assert end is not None
    head, tail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return _blanks(head) + end[0].join(" ".join(words[begin:stop]) for begin, stop in lines) + _blanks(tail)


def _narrowest(lengths: Sequence[int], most: int) -> int:
    """The least width of the fewest lines that are no longer than usual, or of the most that there may be."""
    count = min(most, sum(1 for _ in _lines(lengths, max(USUAL, max(lengths)))))
    low, high = max(lengths), sum(lengths) + len(lengths) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _fits(lengths, middle, count) else (middle + 1, high)
    return low


def _blanks(text: str) -> str:
    """Without ends of lines."""
    return _LINE_END.sub("", text)


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
