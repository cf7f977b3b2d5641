"""The text of a cue: as passages, and its translation in lines of like length."""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dragoman.documents.passage import Escape, Passage, PassageBuilder

_VOICE = r"(?:[-–—‐‑]+|[♪♫#]+|>>+)\s*"
_SOUND = re.compile(r"\s*(?:\[[^\[\]]*\]|\([^()]*\))\s*")
_ENTITY = r"&#?\w+;"


@dataclass(frozen=True)
class Markup:
    """What a format has in the text of cues.

    hidden: what is not shown, tags and the like; escape: how translations are written; entities: whether `&amp;` is &.
    """

    hidden: re.Pattern[str]
    escape: Escape
    entities: bool = False

    def plain(self, text: str) -> str:
        """What is shown of a text."""
        return self.hidden.sub("", text)


def parts_of_cue(lines: Sequence[tuple[str, str]], markup: Markup) -> list[str | Passage]:
    """What stays and what is translated of a cue's lines, the last line's end left out.

    lines: a text and its end. What begins with a dash, a note or a voice's tag, and a line that is all in brackets, has
    a passage of its own; other lines go on with the one before.
    """
    builder = PassageBuilder(markup.escape)
    parts: list[str | Passage] = []
    first = True
    for place, (line, _) in enumerate(lines):
        before, end = lines[place - 1]
        if place and (_begins(line, markup) or _sounds(before, markup)):
            builder.finish(parts.append)
            parts.append(end)
            first = True
        elif place:
            builder.blank(end)
        _add(builder, line, markup, first)
        first = False
    builder.finish(parts.append)
    return parts


def _begins(line: str, markup: Markup) -> bool:
    """Whether a line does not go on with the one before."""
    voice = re.match(r"\s*<v\b", line) or re.match(rf"\s*{_VOICE}", markup.plain(line))
    return voice is not None or _sounds(line, markup)


def _sounds(line: str, markup: Markup) -> bool:
    """Whether a line says what is heard, `[DOOR OPENS]`."""
    return _SOUND.fullmatch(markup.plain(line)) is not None


def _add(builder: PassageBuilder, line: str, markup: Markup, first: bool) -> None:
    """first: the line begins a passage, so signs of voices at its beginning are no text."""
    units = re.compile(rf"({markup.hidden.pattern})|([^\S\xa0]+)|({_ENTITY})|({_VOICE})|.", markup.hidden.flags | re.S)
    for unit in units.finditer(line):
        tag, blank, entity, voice = unit.groups()
        if tag is not None:
            _add_tag(builder, tag)
            continue
        if blank is not None:
            builder.blank(blank)
            continue
        if voice is not None and (first or not voice.strip("♪♫ \t")):
            builder.mark("empty", (voice,))
            first = False
            continue
        first = False
        shown = html.unescape(unit[0]) if entity is not None and markup.entities else unit[0]
        if shown != unit[0] and not shown.isspace():
            builder.text(shown, unit[0])
            continue
        for character in unit[0]:
            if character.isspace() and character != "\xa0":
                builder.blank(character)
            else:
                builder.text(character, character)


def _add_tag(builder: PassageBuilder, raw: str) -> None:
    name = re.match(r"<(/?)\s*([A-Za-z]+)", raw)
    if name is None or name[2].lower() == "br":
        builder.mark("empty", (raw,))
    else:
        builder.mark("close" if name[1] else "open", (raw,), name[2].lower())


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
        lines = list(_wrap(lengths, _narrowest(lengths, len(old))))
    end = _LINE_END.search(before)
    assert end is not None
    head, tail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return _blanks(head) + end[0].join(" ".join(words[begin:stop]) for begin, stop in lines) + _blanks(tail)


def _narrowest(lengths: Sequence[int], most: int) -> int:
    """The least width of the fewest lines that are no longer than usual, or of the most that there may be."""
    count = min(most, sum(1 for _ in _wrap(lengths, max(USUAL, max(lengths)))))
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
    return max(lengths) <= width and sum(1 for _ in _wrap(lengths, width)) <= count


def _wrap(lengths: Sequence[int], width: int) -> Iterator[tuple[int, int]]:
    """Which words stand in each line, as many as the width allows."""
    begin = used = 0
    for place, length in enumerate(lengths):
        if place > begin and used + 1 + length > width:
            yield begin, place
            begin, used = place, length
        else:
            used += length + (place > begin)
    yield begin, len(lengths)
