"""`Splitter`: splits text into sentences."""

import re
from collections.abc import Callable, Iterator

import regex

from dragoman.base.cancellation import until_cancelled
from dragoman.text.languages.codes import base_language, bcp47
from dragoman.text.sentences.division import MAX_LENGTH, count_letters, divide
from dragoman.text.sentences.library import segment

_BREAKS = re.compile(r"[\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+|\s{3,}")
_BULLET = re.compile(r"\s*(?:(?:[-–—*+•·▪◦‣>#|]+|[(\[]?[0-9]{1,3}[.)\]]|[(\[]?[A-Za-z][)\]])\s+)*")
_END = regex.compile(r"[.!?…;][^\w\s]{0,8}\s|[\p{STerm}--[.!?]]|[\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029]|\s{3}", regex.V1)


class Splitter:
    """Splits text into sentences with the library sentencex. Whitespace between sentences is not part of a sentence.

    No sentence spans a line break, a tab, or three or more spaces. Sentences contain no bullets and list numbers, and
    text without letters is not a sentence. oversized: the number of overlong sentences that were split.
    """

    def __init__(
        self,
        language: str,
        fits: Callable[[str], bool] | None = None,
        trim: Callable[[str], tuple[int, int]] | None = None,
        whole_lines: bool = False,
    ) -> None:
        """language: a language code such as `en` or `pt-BR`.

        fits: returns whether a text is short enough for the model; None if all texts are. It is called with texts
        without whitespace at either end. trim: returns the (begin, end) characters of the part of a sentence to
        translate; None for all of it. whole_lines: treat each line as one sentence.
        """
        self._language = _library_code(language)
        self._fits, self._trim, self._whole_lines = fits, trim, whole_lines
        self.oversized = 0

    def sentences(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the (begin, end) positions of each sentence in order, without whitespace at either end."""
        begin = 0
        for match in until_cancelled(_BREAKS.finditer(text)):
            yield from self._split_line(text, begin, match.start())
            begin = match.end()
        yield from self._split_line(text, begin, len(text))

    def _split_line(self, text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
        if not has_letters(text[begin:end]):
            return
        bullet = _BULLET.match(text, begin, end)
        begin = begin if bullet is None else bullet.end()
        line = text[begin:end]
        for sentence in until_cancelled([line] if self._whole_lines else segment(line, self._language)):
            parts = divide(sentence, self._is_short)
            self.oversized += len(parts) > 1
            for part in until_cancelled(parts):  # a line of any length can be one sentence
                stripped = part.strip()
                if has_letters(stripped):
                    start = begin + part.index(stripped)
                    first, last = (0, len(stripped)) if self._trim is None else self._trim(stripped)
                    yield start + first, start + last
                begin += len(part)

    def _is_short(self, text: str) -> bool:
        return count_letters(text) <= MAX_LENGTH and (self._fits is None or self._fits(text))


def _library_code(code: str) -> str:
    """Return the code of a language in the library. Two letters need no import of langcodes, which takes 0.1 s."""
    language = bcp47(code).partition("-")[0].lower()
    return language if len(language) == 2 else base_language(code)


def has_letters(text: str) -> bool:
    """Return whether a text contains a letter."""
    return any(map(str.isalpha, text))


def may_be_divided(text: str) -> bool:
    """Return whether a text may consist of several sentences. This takes much less time than splitting it."""
    end = _END.search(text)
    return end is not None and end.end() < len(text)
