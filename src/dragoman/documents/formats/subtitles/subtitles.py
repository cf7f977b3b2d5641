"""Files of subtitles as documents: the texts of cues are translated, everything else stays."""

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from dragoman.base.log import warn
from dragoman.documents.formats.format import Opened, TextFormat
from dragoman.documents.formats.subtitles.cue_text import Markup, parts_of_cue
from dragoman.documents.formats.subtitles.line_wrapping import wrapped
from dragoman.documents.passage import Passage, as_text

_LINE = re.compile(r"([^\r\n]*)(\r\n?|\n|\Z)")
_ARROW = "-->"


class Line(NamedTuple):
    """A line of a file and what ends it."""

    text: str
    end: str

    @property
    def blank(self) -> bool:
        """Whether nothing is seen of it."""
        return not self.text.strip()

    @property
    def timed(self) -> bool:
        """Whether it says when a cue is shown, or tries to."""
        return _ARROW in self.text


class SubtitleFormat(TextFormat):
    """Files of lines in which a line with an arrow begins a cue."""

    markup: Markup
    times: re.Pattern[str]
    """What players read of a line with an arrow, at its beginning."""

    @abstractmethod
    def shown(self, lines: Sequence[Line]) -> tuple[list[bool], list[int]]:
        """Which lines are text that is shown; and which have letters that no player shows, though nothing says why."""

    def opened_text(self, text: str) -> Opened[str]:
        lines = _lines(text)
        shown, stray = self.shown(lines)
        self._warn(lines, stray)
        parts: list[str | Passage] = []
        cues: list[range] = []  # which of the parts they are
        for is_text, group in groupby(range(len(lines)), shown.__getitem__):
            run = [lines[place] for place in group]
            if not is_text:
                parts.append("".join(line.text + line.end for line in run))
                continue
            found = parts_of_cue(run, self.markup)
            cues.append(range(len(parts), len(parts) + len(found)))
            parts += [*found, run[-1].end]
        before = [part if isinstance(part, str) else as_text(part) for part in parts]
        return Opened(parts, lambda texts: "".join(self._written(cues, before, texts)))

    def _written(self, cues: Sequence[range], before: Sequence[str], texts: Sequence[str]) -> Iterator[str]:
        at = 0
        for cue in cues:
            yield from texts[at : cue.start]
            at = cue.stop
            yield self._cue(before[cue.start : at], texts[cue.start : at])
        yield from texts[at:]

    def _cue(self, before: Sequence[str], texts: Sequence[str]) -> str:
        """A line that became blank, which would end the cue, is left out."""
        pairs = zip(before, texts, strict=True)
        new = "".join(text if text == old else wrapped(text, old, self.markup.hidden) for old, text in pairs)
        if new == "".join(before):
            return new
        lines = [line for line in _lines(new) if not line.blank]
        return "".join([*(line.text + line.end for line in lines[:-1]), *(line.text for line in lines[-1:])])

    def _warn(self, lines: Sequence[Line], stray: Sequence[int]) -> None:
        broken = [
            place for place, line in enumerate(lines) if line.timed and self.times.match(line.text.strip()) is None
        ]
        if not any(line.timed for line in lines) and any(not line.blank for line in lines):
            warn(f"no line has {_ARROW}, so there are no subtitles in this file: all of it stays as it is")
            return
        for places, what in (
            (broken, f"with {_ARROW} have no times that players could read, and stay as they are"),
            (stray, "of text belong to no cue, and stay as they are"),
        ):
            if places:
                warn(f"{len(places):,} line(s) {what}; the first is line {places[0] + 1}")


def _lines(text: str) -> list[Line]:
    return [Line(*found) for found in _LINE.findall(text)]
