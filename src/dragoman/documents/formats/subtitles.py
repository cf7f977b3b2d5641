"""Files of subtitles, SubRip and WebVTT, as documents: the texts of cues are translated, everything else stays."""

import html
import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from dragoman.base.log import warn
from dragoman.documents.formats.cues import Markup, parts_of_cue, wrapped
from dragoman.documents.formats.format import Opened, TextFormat
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


_TAG = r"</?\s*(?:i|b|u|s|em|strong|font|span|ruby|rt|c|v|br)\b[^<>]*>"
_STYLE = r"\{\\[^{}]*\}|\{[A-Za-z]:[^{}]*\}"
_SUBRIP_TIME = r"\d+:\d+:\d+(?:[,.:]\d+)?"


def _escape_subrip(text: str, _: bool) -> str:
    """SubRip has no way to write a sign otherwise; only what would begin a cue, or a line, is changed."""
    return text.replace("-->", "->").replace("\r", " ")


class SubRip(SubtitleFormat):
    """There is no standard: what pysubs2 and players accept is text, all of it."""

    markup = Markup(re.compile(f"{_TAG}|{_STYLE}", re.IGNORECASE), _escape_subrip)
    times = re.compile(rf"{_SUBRIP_TIME}\s*-->\s*{_SUBRIP_TIME}")

    def shown(self, lines: Sequence[Line]) -> tuple[list[bool], list[int]]:
        """All from the first cue on but times and numbers: a blank line does not end a cue without a number behind."""
        found, stray, begun = [False] * len(lines), [], False
        for place, line in enumerate(lines):
            if line.timed or line.blank or _numbers(lines, place):
                begun = begun or line.timed
            elif begun:
                found[place] = True
            elif any(map(str.isalpha, line.text)):
                stray.append(place)
        return found, stray


def _numbers(lines: Sequence[Line], place: int) -> bool:
    """Whether a line is the number of the next cue."""
    return lines[place].text.strip().isdigit() and place + 1 < len(lines) and lines[place + 1].timed


_WEBVTT_TIME = r"(?:\d{2,}:)?[0-5]\d:[0-5]\d\.\d{3}"
_REMARK = re.compile(r"(?:NOTE|STYLE|REGION)(?:\s|\Z)")


def _escape_webvtt(text: str, _: bool) -> str:
    return html.escape(text.replace("\r", " "), quote=False)


class WebVtt(SubtitleFormat):
    """A blank line ends a cue; what a block without times has is not shown (section 6.1)."""

    markup = Markup(re.compile(r"<[^<>]*>"), _escape_webvtt, entities=True)
    times = re.compile(rf"{_WEBVTT_TIME}\s+-->\s+{_WEBVTT_TIME}(?:\s|\Z)")

    def shown(self, lines: Sequence[Line]) -> tuple[list[bool], list[int]]:
        """The lines of a cue behind its times."""
        found, stray = [False] * len(lines), []
        within = False
        remark = True  # so is the head of the file
        for place, line in enumerate(lines):
            begins = place == 0 or not lines[place - 1].text
            if begins and place:
                within, remark = False, _REMARK.match(line.text) is not None
            following = lines[place + 1] if place + 1 < len(lines) else Line("", "")
            if line.timed:
                within, remark = True, False
            elif not line.text or (following.timed and (begins or line.text.strip().isdigit())):
                continue
            elif within:
                found[place] = True
            elif not remark and any(map(str.isalpha, line.text)):
                stray.append(place)
        return found, stray
