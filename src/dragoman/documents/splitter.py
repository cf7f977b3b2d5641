"""`Splitter`: where the sentences of a text begin and end."""

import re
from collections.abc import Callable, Iterator

from dragoman.base.packages import optional
from dragoman.text.division import divide

LONGEST = 1000
"""Characters of what is translated at once. What is longer is no sentence, and longer than what models learn from."""

_BREAKS = re.compile(r"[\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+|\s{3,}")
_BULLET = re.compile(r"\s*(?:(?:[-–—*+•·▪◦‣>#|]+|[(\[]?[0-9]{1,3}[.)\]]|[(\[]?[A-Za-z][)\]])\s+)*")


class Splitter:
    """Sentences by the library sentencex; layout lies between them.

    What no sentence crosses: ends of lines, tabs, runs of three blanks and more. Bullets and numbers of lists do not
    belong to sentences, and what has no letter is none. divided: how many were too long, and were translated in parts.
    """

    def __init__(self, language: str, fits: Callable[[str], bool]) -> None:
        """language: a code such as en. fits: whether the model can read a text, without blanks around it."""
        self._segment = optional("sentencex", "documents").segment
        self._language, self._fits = language, fits
        self.divided = 0

    def sentences(self, text: str) -> Iterator[tuple[int, int]]:
        """Where each begins and ends, in order; no blank at either end."""
        begin = 0
        for found in _BREAKS.finditer(text):
            yield from self._of_line(text, begin, found.start())
            begin = found.end()
        yield from self._of_line(text, begin, len(text))

    def _of_line(self, text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
        if not any(map(str.isalpha, text[begin:end])):
            return
        bullet = _BULLET.match(text, begin, end)
        begin = begin if bullet is None else bullet.end()
        for sentence in self._segments(text[begin:end]):
            parts = divide(sentence, lambda part: len(part) <= LONGEST and self._fits(part))
            self.divided += len(parts) > 1
            for part in parts:
                inked = part.strip()
                if any(map(str.isalpha, inked)):
                    start = begin + part.index(inked)
                    yield start, start + len(inked)
                begin += len(part)

    def _segments(self, line: str) -> list[str]:
        """The line divided, nothing lost of it."""
        if not line:
            return []
        # a lone surrogate is no character that the library could read
        given = re.sub(r"[\ud800-\udfff]", "\ufffd", line)
        segments, place = [], 0
        for each in self._segment(self._language, given):
            segments.append(line[place : place + len(each)])
            place += len(each)
        return segments if "".join(segments) == line else [line]
