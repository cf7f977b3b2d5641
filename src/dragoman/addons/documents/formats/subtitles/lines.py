"""Lines of a subtitle file, and the parser of formats in which a line with times starts each cue."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from dragoman.addons.documents.formats.format import ParsedDocument
from dragoman.addons.documents.formats.subtitles.cue import Cue
from dragoman.addons.documents.formats.subtitles.document import parse_subtitles
from dragoman.addons.documents.formats.subtitles.markup import CueMarkup
from dragoman.addons.documents.languages import UNKNOWN, Languages
from dragoman.base.log import warn

_LINE = re.compile(r"([^\r\n]*)(\r\n?|\n|\Z)")


class Line(NamedTuple):
    """A line of a file and its line break."""

    text: str
    end: str

    @property
    def is_blank(self) -> bool:
        """Whether the line has no visible character."""
        return not self.text.strip()


def split_lines(text: str) -> list[Line]:
    """Split a text into lines. The last one is empty if the text ends with a line break."""
    return [Line(*groups) for groups in _LINE.findall(text)]


def seconds(time: str) -> float:
    """Return a time such as `1:02:03,5` or `02:03.500` in seconds."""
    total = 0.0
    for part in time.replace(",", ".").split(":"):
        total = total * 60 + float(part)
    return total


def report_lines(numbers: Sequence[int], problem: str) -> None:
    """Warn about lines with a problem. numbers: their indices."""
    if numbers:
        warn(f"{len(numbers):,} line(s) {problem}; the first is line {numbers[0] + 1}")


class TimedLinesParser(ABC):
    """Parses files in which a line with times starts a cue. Subclasses define the markup and times of a format."""

    markup: CueMarkup
    separator = "-->"
    """Occurs in the lines with times."""
    times: re.Pattern[str]
    """Matches the times that players accept, in two groups, at the start of a line with times."""

    @abstractmethod
    def find_text(self, lines: Sequence[Line]) -> tuple[list[bool], list[int]]:
        """Return whether each line is displayed text, and the indices of stray lines.

        A stray line contains letters but belongs to no cue, comment or header, so players do not display it.
        """

    def has_times(self, line: Line) -> bool:
        """Return whether a line contains the times of a cue, even if the times are malformed."""
        return self.separator in line.text

    def parse(self, text: str, languages: Languages = UNKNOWN) -> ParsedDocument[str]:
        """Parse a file. Stray lines and lines with malformed times remain untranslated, with a warning."""
        lines = split_lines(text)
        is_text, stray = self.find_text(lines)
        self._report(lines, stray)
        pieces: list[str | Cue] = []
        times: re.Match[str] | None = None
        for is_displayed, group in groupby(range(len(lines)), is_text.__getitem__):
            run = [lines[index] for index in group]
            raw = "".join(line.text + line.end for line in run)
            if not is_displayed:
                pieces.append(raw)
                timed = next((line for line in reversed(run) if self.has_times(line)), None)
                times = times if timed is None else self.times.match(timed.text.strip())
                continue
            end = run[-1].end
            pieces += [self._cue(raw[: len(raw) - len(end)], times), end]
        return parse_subtitles(pieces, self.markup, languages.source)

    def _cue(self, text: str, times: re.Match[str] | None) -> Cue:
        if times is None:
            return Cue(text)
        return Cue(text, seconds(times[1]), seconds(times[2]), times.string[times.end() :])

    def _report(self, lines: Sequence[Line], stray: Sequence[int]) -> None:
        timed = [index for index, line in enumerate(lines) if self.has_times(line)]
        if not timed and any(not line.is_blank for line in lines):
            warn(f"no line has {self.separator}, so this file has no subtitles and remains unchanged")
            return
        malformed = [index for index in timed if self.times.match(lines[index].text.strip()) is None]
        report_lines(malformed, f"with {self.separator} have times that players cannot read, and remain unchanged")
        report_lines(stray, "of text belong to no cue, and remain unchanged")
