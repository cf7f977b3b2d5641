"""`segment`: the sentences of a line by the library sentencex, with corrections of its faults."""

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import accumulate
from typing import Any

import regex

from dragoman.text.sentences.division import MAX_LENGTH, count_letters, is_continuation
from dragoman.text.sentences.full_stops import is_within_name

_WINDOW = MAX_LENGTH
"""Maximum number of characters that are passed to the library at once."""

_LONG, _SHORT = 200, 40
"""A quotation in a sentence with more letters than `_LONG` is divided into parts of at least `_SHORT` letters."""

_SURROGATE = regex.compile(r"[\ud800-\udfff]")
_FURTHER_END = regex.compile(r"(?<=[។៕]\s*)(?=[^\s។៕])")
_OPENING_AT_END = regex.compile(r"\s([\"'“„«‘‚(\[]+)\Z")
_CLOSING = regex.compile(r"[\"'”’»“)\]」』]+\s*\Z")
_QUOTED_BEFORE = regex.compile(r"[」』]\s*\Z")
_PARTICLE = regex.compile(r"と(?!ても|りあえず|ころ|もあれ|にかく)|って|を|など")
_QUOTES = str.maketrans(dict.fromkeys('"“”„«»‘‹›()[]（）「」『』', " "))


def segment(line: str, language: str) -> Iterator[str]:
    """Yield the sentences of a line, including the whitespace between them. Their concatenation is the line."""
    for sentence in _segment_in_windows(line, language):
        yield from _divide_quotation(sentence, language)


def _segment_in_windows(line: str, language: str) -> Iterator[str]:
    """Yield the sentences of a line, which is passed to the library in windows.

    The library takes quadratic time for some texts, such as Chinese ones.
    """
    start = begin = 0  # of the sentence, and of the window
    while begin < len(line):
        window = line[begin : begin + _WINDOW]
        sentences = _corrected(_segment_window(window, language), language)
        if begin + len(window) < len(line):  # the last sentence may continue after the window
            if len(sentences) == 1:
                begin += _last_boundary(window)
                continue
            sentences.pop()
        for sentence in sentences:
            begin += len(sentence)
            yield line[start:begin]
            start = begin


def _segment_window(text: str, language: str) -> list[str]:
    # the library does not support lone surrogates
    lengths = [len(sentence) for sentence in _library()(language, _SURROGATE.sub("\ufffd", text))]
    if sum(lengths) != len(text):
        return [text]
    return [text[end - length : end] for length, end in zip(lengths, accumulate(lengths), strict=True)]


def _corrected(sentences: Iterable[str], language: str) -> list[str]:
    """Return the sentences with corrected boundaries.

    Opening quotation marks belong to the following sentence, closing ones to the preceding sentence. A Japanese
    quotation before a particle does not end a sentence, and neither does a full stop in a name, such as `System.IO`,
    whereas the Khmer full stop does.
    """
    corrected: list[str] = []
    opening = ""
    parts = [part for each in sentences for part in _FURTHER_END.split(each)]
    for part, after in zip(parts, [*parts[1:], ""], strict=True):
        sentence = opening + part
        match = _OPENING_AT_END.search(sentence)
        opening = "" if match is None else match[1]
        sentence = sentence[: len(sentence) - len(opening)]
        if corrected and (
            _CLOSING.match(sentence)
            or _continues_quotation(corrected[-1], sentence)
            or is_within_name(corrected[-1], sentence + after[:1], language)
        ):
            corrected[-1] += sentence
        elif sentence:
            corrected.append(sentence)
    if opening:
        corrected[-1:] = ["".join([*corrected[-1:], opening])]
    return corrected


def _continues_quotation(sentence: str, following: str) -> bool:
    return _QUOTED_BEFORE.search(sentence) is not None and _PARTICLE.match(following) is not None


def _divide_quotation(sentence: str, language: str) -> list[str]:
    """Divide a long sentence that contains a quotation or brackets with several sentences.

    The library never divides quotations, so that a whole speech may be one sentence.
    """
    if count_letters(sentence) <= _LONG:
        return [sentence]
    masked = sentence.translate(_QUOTES)
    if masked == sentence:
        return [sentence]
    ends = accumulate(map(len, _segment_in_windows(masked, language)))
    parts: list[str] = []
    begin = 0
    for part in _corrected((sentence[begin : (begin := end)] for end in ends), language):
        if parts and count_letters(parts[-1]) < _SHORT:
            parts[-1] += part
        else:
            parts.append(part)
    if len(parts) > 1 and count_letters(parts[-1]) < _SHORT:
        parts[-2:] = ["".join(parts[-2:])]
    return parts


def _last_boundary(text: str) -> int:
    """Return the number of characters up to the last space or, without one, up to the last whole character."""
    if end := text.rfind(" ") + 1:
        return end
    end = len(text) - 1
    while end > 1 and is_continuation(text, end):
        end -= 1
    return end


@cache
def _library() -> Any:
    from sentencex import segment  # only when it is needed, because most commands split no text

    return segment
