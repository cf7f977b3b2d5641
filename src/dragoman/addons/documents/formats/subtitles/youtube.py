"""`YouTube`: parses the SubViewer format of YouTube (.sbv)."""

import re
from collections.abc import Sequence

from dragoman.addons.documents.formats.subtitles.lines import Line, TimedLinesParser
from dragoman.addons.documents.formats.subtitles.markup import CueMarkup, Tag

_TIME = r"\d+:\d\d:\d\d\.\d+"
_TIMES = re.compile(rf"({_TIME}),({_TIME})\Z")


def _escape(text: str, _: bool) -> str:
    return text.replace("\r", " ").replace("\n", " ").replace("[br]", " ")


class YouTube(TimedLinesParser):
    """SubViewer as YouTube reads and writes it (.sbv). A cue has a line with its times, and lines of text."""

    markup = CueMarkup(re.compile(r"(?!)"), _escape, lambda _: Tag("empty"), line_break=re.compile(r"\r\n?|\n|\[br\]"))
    separator = "times, such as 0:00:01.000,0:00:02.000"
    times = _TIMES

    def has_times(self, line: Line) -> bool:
        """See `TimedLinesParser.has_times`. A comma separates the times."""
        return _TIMES.match(line.text.strip()) is not None

    def find_text(self, lines: Sequence[Line]) -> tuple[list[bool], list[int]]:
        """See `TimedLinesParser.find_text`. All text after the first times is displayed."""
        is_text, stray, in_cues = [False] * len(lines), [], False
        for index, line in enumerate(lines):
            if self.has_times(line):
                in_cues = True
            elif in_cues:
                is_text[index] = not line.is_blank
            elif any(map(str.isalpha, line.text)):
                stray.append(index)
        return is_text, stray
