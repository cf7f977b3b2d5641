"""Parses subtitle files (SubRip and WebVTT). The text of cues is translated, and everything else is preserved."""

import html
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from dragoman.base.log import warn
from dragoman.documents.formats.cues import CueMarkup, split_cue, wrap_like
from dragoman.documents.formats.format import ParsedDocument
from dragoman.documents.passage import Passage, raw_text

_LINE = re.compile(r"([^\r\n]*)(\r\n?|\n|\Z)")
_ARROW = "-->"


class Line(NamedTuple):
    """A line of a file and its line break."""

    text: str
    end: str

    @property
    def is_blank(self) -> bool:
        """Whether the line has no visible character."""
        return not self.text.strip()

    @property
    def has_arrow(self) -> bool:
        """Whether the line contains the times of a cue, even if the times are malformed."""
        return _ARROW in self.text


class SubtitleParser(ABC):
    """Parses files in which a line with an arrow starts a cue. Subclasses define the markup and times of a format."""

    markup: CueMarkup
    times: re.Pattern[str]
    """Matches the times that players accept, at the start of a line with an arrow."""

    @abstractmethod
    def find_text(self, lines: Sequence[Line]) -> tuple[list[bool], list[int]]:
        """Return whether each line is displayed text, and the indices of stray lines.

        A stray line contains letters but belongs to no cue, comment or header, so players do not display it.
        """

    def parse(self, text: str) -> ParsedDocument[str]:
        """Parse a file. Stray lines and lines with malformed times remain untranslated, with a warning."""
        lines = _split_lines(text)
        is_text, stray = self.find_text(lines)
        self._warn(lines, stray)
        parts: list[str | Passage] = []
        cues: list[range] = []  # the indices of each cue's parts
        for is_displayed, group in groupby(range(len(lines)), is_text.__getitem__):
            run = [lines[index] for index in group]
            if not is_displayed:
                parts.append("".join(line.text + line.end for line in run))
                continue
            cue_parts = split_cue(run, self.markup)
            cues.append(range(len(parts), len(parts) + len(cue_parts)))
            parts += [*cue_parts, run[-1].end]
        original = [part if isinstance(part, str) else raw_text(part) for part in parts]
        return ParsedDocument(parts, lambda texts: "".join(self._write(cues, original, texts)))

    def _write(self, cues: Sequence[range], original: Sequence[str], texts: Sequence[str]) -> Iterator[str]:
        end = 0
        for cue in cues:
            yield from texts[end : cue.start]
            end = cue.stop
            yield self._write_cue(original[cue.start : end], texts[cue.start : end])
        yield from texts[end:]

    def _write_cue(self, original: Sequence[str], texts: Sequence[str]) -> str:
        """Wrap the lines of a translated cue. Blank lines are removed, because they would end the cue."""
        pairs = zip(original, texts, strict=True)
        new = "".join(text if text == old else wrap_like(old, text, self.markup.hidden) for old, text in pairs)
        if new == "".join(original):
            return new
        lines = [line for line in _split_lines(new) if not line.is_blank]
        return "".join([*(line.text + line.end for line in lines[:-1]), *(line.text for line in lines[-1:])])

    def _warn(self, lines: Sequence[Line], stray: Sequence[int]) -> None:
        malformed = [
            index for index, line in enumerate(lines) if line.has_arrow and self.times.match(line.text.strip()) is None
        ]
        if not any(line.has_arrow for line in lines) and any(not line.is_blank for line in lines):
            warn(f"no line has {_ARROW}, so this file has no subtitles and remains unchanged")
            return
        for indices, problem in (
            (malformed, f"with {_ARROW} have times that players cannot read, and remain unchanged"),
            (stray, "of text belong to no cue, and remain unchanged"),
        ):
            if indices:
                warn(f"{len(indices):,} line(s) {problem}; the first is line {indices[0] + 1}")


def _split_lines(text: str) -> list[Line]:
    return [Line(*groups) for groups in _LINE.findall(text)]


_TAG = r"</?\s*(?:i|b|u|s|em|strong|font|span|ruby|rt|c|v|br)\b[^<>]*>"
_STYLE = r"\{\\[^{}]*\}|\{[A-Za-z]:[^{}]*\}"
_SUBRIP_TIME = r"\d+:\d+:\d+(?:[,.:]\d+)?"


def _escape_subrip(text: str, _: bool) -> str:
    """Replace text that would start a cue or a line, because SubRip has no escape sequences."""
    return text.replace("-->", "->").replace("\r", " ")


class SubRip(SubtitleParser):
    """SubRip (.srt). A cue has a number, times and lines of text. Players interpret tags as in HTML.

    SubRip has no standard. As in pysubs2 and in players, all text that follows the first cue's times is displayed.
    """

    markup = CueMarkup(re.compile(f"{_TAG}|{_STYLE}", re.IGNORECASE), _escape_subrip)
    times = re.compile(rf"{_SUBRIP_TIME}\s*-->\s*{_SUBRIP_TIME}")

    def find_text(self, lines: Sequence[Line]) -> tuple[list[bool], list[int]]:
        """See `SubtitleParser.find_text`. A blank line does not end a cue unless a number follows."""
        is_text, stray, in_cues = [False] * len(lines), [], False
        for index, line in enumerate(lines):
            if line.has_arrow or line.is_blank or _is_cue_number(lines, index):
                in_cues = in_cues or line.has_arrow
            elif in_cues:
                is_text[index] = True
            elif any(map(str.isalpha, line.text)):
                stray.append(index)
        return is_text, stray


def _is_cue_number(lines: Sequence[Line], index: int) -> bool:
    return lines[index].text.strip().isdigit() and index + 1 < len(lines) and lines[index + 1].has_arrow


_WEBVTT_TIME = r"(?:\d{2,}:)?[0-5]\d:[0-5]\d\.\d{3}"
_COMMENT = re.compile(r"(?:NOTE|STYLE|REGION)(?:\s|\Z)")


def _escape_webvtt(text: str, _: bool) -> str:
    return html.escape(text.replace("\r", " "), quote=False)


class WebVtt(SubtitleParser):
    """WebVTT (.vtt, https://www.w3.org/TR/webvtt1/). Blank lines separate blocks, and blocks with an arrow are cues.

    A block without times is not displayed (section 6.1).
    """

    markup = CueMarkup(re.compile(r"<[^<>]*>"), _escape_webvtt, has_entities=True)
    times = re.compile(rf"{_WEBVTT_TIME}\s+-->\s+{_WEBVTT_TIME}(?:\s|\Z)")

    def find_text(self, lines: Sequence[Line]) -> tuple[list[bool], list[int]]:
        """See `SubtitleParser.find_text`. The text of a cue consists of the lines after its times."""
        is_text, stray = [False] * len(lines), []
        in_cue = False
        in_comment = True  # the header of the file is treated as a comment
        for index, line in enumerate(lines):
            starts_block = index == 0 or not lines[index - 1].text
            if starts_block and index:
                in_cue, in_comment = False, _COMMENT.match(line.text) is not None
            following = lines[index + 1] if index + 1 < len(lines) else Line("", "")
            if line.has_arrow:
                in_cue, in_comment = True, False
            elif not line.text or (following.has_arrow and (starts_block or line.text.strip().isdigit())):
                continue
            elif in_cue:
                is_text[index] = True
            elif not in_comment and any(map(str.isalpha, line.text)):
                stray.append(index)
        return is_text, stray
