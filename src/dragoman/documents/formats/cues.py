"""Splits the text of a subtitle cue into passages, and wraps its translation into lines of similar length."""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dragoman.documents.passage import Escape, Passage, PassageBuilder

USUAL_LINE_WIDTH = 42
"""The maximum line length, in characters, in most guidelines for subtitles in European languages."""

_SPEAKER = r"(?:[-–—‐‑]+|[♪♫#]+|>>+)\s*"
_SOUND = re.compile(r"\s*(?:\[[^\[\]]*\]|\([^()]*\))\s*")
_ENTITY = r"&#?\w+;"

_LINE_END = re.compile(r"\r\n?|\n")
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)\]]*\Z")


@dataclass(frozen=True)
class CueMarkup:
    """The markup of cues in a subtitle format.

    hidden: matches tags and other text that is not displayed; escape: encodes the text of a translation; has_entities:
    whether entities such as `&amp;` are decoded.
    """

    hidden: re.Pattern[str]
    escape: Escape
    has_entities: bool = False

    def strip_markup(self, text: str) -> str:
        """Return a text without its markup."""
        return self.hidden.sub("", text)


def split_cue(lines: Sequence[tuple[str, str]], markup: CueMarkup) -> list[str | Passage]:
    """Split the lines of a cue into untranslated and translatable parts, without the last line break.

    lines: pairs of text and line break. A line that starts with a dash, a note or a voice tag, or is entirely in
    brackets, starts a new passage. Any other line continues the previous passage.
    """
    builder = PassageBuilder(markup.escape)
    parts: list[str | Passage] = []
    first = True
    for index, (line, _) in enumerate(lines):
        previous, end = lines[index - 1]
        if index and (_starts_passage(line, markup) or _is_sound(previous, markup)):
            builder.finish(parts.append)
            parts.append(end)
            first = True
        elif index:
            builder.add_blank(end)
        _add_line(builder, line, markup, first)
        first = False
    builder.finish(parts.append)
    return parts


def _starts_passage(line: str, markup: CueMarkup) -> bool:
    """Return whether a line starts a new passage instead of continuing the previous line."""
    speaker = re.match(r"\s*<v\b", line) or re.match(rf"\s*{_SPEAKER}", markup.strip_markup(line))
    return speaker is not None or _is_sound(line, markup)


def _is_sound(line: str, markup: CueMarkup) -> bool:
    """Return whether a line describes a sound, such as `[DOOR OPENS]`."""
    return _SOUND.fullmatch(markup.strip_markup(line)) is not None


def _add_line(builder: PassageBuilder, line: str, markup: CueMarkup, first: bool) -> None:
    """Add a line. first: whether the line starts a passage; if so, a speaker's dash or note at the start is markup."""
    units = re.compile(
        rf"({markup.hidden.pattern})|([^\S\xa0]+)|({_ENTITY})|({_SPEAKER})|.", markup.hidden.flags | re.S
    )
    for unit in units.finditer(line):
        tag, blank, entity, speaker = unit.groups()
        if tag is not None:
            _add_tag(builder, tag)
            continue
        if blank is not None:
            builder.add_blank(blank)
            continue
        if speaker is not None and (first or not speaker.strip("♪♫ \t")):
            builder.add_mark("empty", (speaker,))
            first = False
            continue
        first = False
        decoded = html.unescape(unit[0]) if entity is not None and markup.has_entities else unit[0]
        if decoded != unit[0] and not decoded.isspace():
            builder.add_text(decoded, unit[0])
            continue
        for character in unit[0]:
            if character.isspace() and character != "\xa0":
                builder.add_blank(character)
            else:
                builder.add_text(character, character)


def _add_tag(builder: PassageBuilder, raw: str) -> None:
    name = re.match(r"<(/?)\s*([A-Za-z]+)", raw)
    if name is None or name[2].lower() == "br":
        builder.add_mark("empty", (raw,))
    else:
        builder.add_mark("close" if name[1] else "open", (raw,), name[2].lower())


def wrap_like(original: str, text: str, hidden: re.Pattern[str]) -> str:
    """Wrap a translation into the fewest lines of usual width, with at most as many lines as the original.

    The longest line is as short as possible, and words are not split. If each line of the original is a sentence and
    each translated sentence fits on a line, each translated sentence has a separate line. hidden: matches markup, which
    has no width.
    """
    original_lines = _LINE_END.split(original)
    words = list(_split_words(text, hidden))
    if len(original_lines) == 1 or not words:
        return text
    visible_words = [hidden.sub("", word) for word in words]
    widths = [len(word) for word in visible_words]
    ends = [end for end, word in enumerate(visible_words, 1) if _SENTENCE_END.search(word) or end == len(words)]
    lines = list(zip([0, *ends], ends, strict=False))
    has_sentence_per_line = len(lines) == len(original_lines) and all(
        _SENTENCE_END.search(hidden.sub("", line).rstrip()) for line in original_lines
    )
    if not has_sentence_per_line or any(not _fits(widths[begin:stop], USUAL_LINE_WIDTH, 1) for begin, stop in lines):
        lines = list(_fill(widths, _smallest_width(widths, len(original_lines))))
    end = _LINE_END.search(original)
    assert end is not None
    head, tail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    wrapped = end[0].join(" ".join(words[begin:stop]) for begin, stop in lines)
    return _LINE_END.sub("", head) + wrapped + _LINE_END.sub("", tail)


def _smallest_width(widths: Sequence[int], max_lines: int) -> int:
    """Return the smallest width at which the text fits in `max_lines` lines and in the lines of the usual width."""
    count = min(max_lines, sum(1 for _ in _fill(widths, max(USUAL_LINE_WIDTH, max(widths)))))
    low, high = max(widths), sum(widths) + len(widths) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _fits(widths, middle, count) else (middle + 1, high)
    return low


def _split_words(text: str, hidden: re.Pattern[str]) -> Iterator[str]:
    """Split a text at whitespace, except within markup."""
    word = ""
    position = 0
    for match in [*hidden.finditer(text), None]:
        begin, end = (len(text), len(text)) if match is None else match.span()
        first, *others = re.split(r"[ \t\r\n]+", text[position:begin])
        word += first
        for other in others:
            if word:
                yield word
            word = other
        word += text[begin:end]
        position = end
    if word:
        yield word


def _fits(widths: Sequence[int], width: int, count: int) -> bool:
    return max(widths) <= width and sum(1 for _ in _fill(widths, width)) <= count


def _fill(widths: Sequence[int], width: int) -> Iterator[tuple[int, int]]:
    """Fill lines with words greedily. Yields the begin and end index of the words of each line."""
    begin = used = 0
    for index, length in enumerate(widths):
        if index > begin and used + 1 + length > width:
            yield begin, index
            begin, used = index, length
        else:
            used += length + (index > begin)
    yield begin, len(widths)
