"""Wraps the translation of a cue into lines of similar length."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dragoman.addons.documents.formats.subtitles.markup import CueMarkup
from dragoman.text.words import is_unspaced

USUAL_LINE_WIDTH = 42
"""The maximum line length, in characters, in most guidelines for subtitles in European languages."""

_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)\]]*\Z")
_NOT_FIRST = frozenset("、。，．！？：；」』）〕］｝】》〉”’…‥ーぁぃぅぇぉっゃゅょァィゥェォッャュョ々")
"""Characters that cannot start a line in scripts without spaces."""


class _Word(NamedTuple):
    """A piece of text that no line break may divide. visible: without markup; has_space: whether a space precedes."""

    raw: str
    visible: str
    has_space: bool

    @property
    def width(self) -> int:
        """The number of displayed characters."""
        return len(self.visible)


def wrap_like(original: str, text: str, markup: CueMarkup) -> str:
    """Wrap a translation into as many lines as the original, or one line per word if there are fewer words.

    The longest line is as short as possible, and words are not split. If each line of the original is a sentence and
    each translated sentence fits on a line of the usual width, each translated sentence has a separate line. Tags have
    no width and stay in one line.
    """
    originals, breaks = _split_lines(original, markup)
    if not breaks:
        return text
    words = list(_split_words(text, markup))
    count = min(len(originals), len(words))
    if count < 2:
        return text
    ends = [end for end, word in enumerate(words, 1) if _SENTENCE_END.search(word.visible) or end == len(words)]
    lines = list(zip([0, *ends], ends, strict=False))
    has_sentence_per_line = len(lines) == len(originals) and all(
        _SENTENCE_END.search(line.rstrip()) for line in originals
    )
    if not has_sentence_per_line or any(_width(words[slice(*line)]) > USUAL_LINE_WIDTH for line in lines):
        lines = list(_fill(words, _smallest_width(words, count), count))
    first, *others = (_join(words[begin:end]) for begin, end in lines)
    return first + "".join(each for pair in zip(breaks, others, strict=False) for each in pair)


def _split_lines(text: str, markup: CueMarkup) -> tuple[list[str], list[str]]:
    """Return the displayed text of each line that is not blank, and the raw line breaks between these lines.

    Blank lines belong to the line breaks.
    """
    lines, breaks = [list[str]()], list[str]()
    pending = blanks = ""  # the line breaks after the current line, and the blanks after them
    for token in markup.tokens(text):
        if token.kind == "line_break":
            pending += blanks + token.raw
            blanks = ""
        elif token.kind == "blank" and pending:
            blanks += token.raw
        elif token.kind != "markup":
            if pending:
                breaks.append(pending)
                lines.append([])
                pending = blanks = ""
            lines[-1].append(markup.decode(token.raw) if token.kind == "encoded" else token.raw)
    return ["".join(line) for line in lines], breaks


def _width(words: Sequence[_Word]) -> int:
    return sum(word.width + word.has_space for word in words) - words[0].has_space


def _join(words: Sequence[_Word]) -> str:
    return "".join(" " * (word.has_space and index > 0) + word.raw for index, word in enumerate(words))


def _split_words(text: str, markup: CueMarkup) -> Iterator[_Word]:
    """Split a text at whitespace outside markup, and between characters of scripts without spaces.

    Tags stay next to the characters that they enclose.
    """
    raw: list[str] = []
    shown: list[str] = []
    tags: list[str] = []  # the tags after the last character of the word that may belong to the next word
    has_space = False
    for kind, piece in markup.tokens(text.strip(" \t\r\n")):
        if kind in ("blank", "line_break"):
            if raw or tags:
                yield _Word("".join([*raw, *tags]), "".join(shown), has_space)
            raw, shown, tags, has_space = [], [], [], True
        elif kind == "markup":
            (tags if tags or markup.classify(piece).kind != "close" else raw).append(piece)
        else:
            for character in (piece,) if kind == "encoded" else piece:
                if shown and kind != "encoded" and _may_precede(shown[-1], character):
                    yield _Word("".join(raw), "".join(shown), has_space)
                    raw, shown, has_space = [], [], False
                raw += [*tags, character]
                shown.append(markup.decode(character) if kind == "encoded" else character)
                tags = []
    if raw or tags:
        yield _Word("".join([*raw, *tags]), "".join(shown), has_space)


def _may_precede(character: str, following: str) -> bool:
    """Return whether a line may end between two adjacent characters of a script without spaces."""
    return following not in _NOT_FIRST and is_unspaced(character) and is_unspaced(following)


def _smallest_width(words: Sequence[_Word], max_lines: int) -> int:
    """Return the smallest width at which the text fits in `max_lines` lines."""
    low, high = max(word.width for word in words), _width(words)
    while low < high:
        middle = (low + high) // 2
        fits = sum(1 for _ in _fill(words, middle, 1)) <= max_lines
        low, high = (low, middle) if fits else (middle + 1, high)
    return low


def _fill(words: Sequence[_Word], width: int, min_lines: int) -> Iterator[tuple[int, int]]:
    """Fill lines with words greedily. Yields the begin and end index of the words of each line."""
    begin = used = lines = 0
    for index, word in enumerate(words):
        is_due = len(words) - index < min_lines - lines
        if index > begin and (used + word.has_space + word.width > width or is_due):
            yield begin, index
            begin, used = index, 0
            lines += 1
        used += word.width + (word.has_space and index > begin)
    yield begin, len(words)
