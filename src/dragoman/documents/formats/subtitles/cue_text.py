"""The text of a cue as passages: its lines are one text, unless each is another voice's."""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.documents.passage import Escape, Passage
from dragoman.documents.passage_builder import PassageBuilder

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
