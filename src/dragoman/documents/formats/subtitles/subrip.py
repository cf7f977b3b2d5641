"""SubRip (.srt): a number, times, lines of text; players read its tags as HTML's."""

import re
from collections.abc import Sequence

from dragoman.documents.formats.subtitles.cue_text import Markup
from dragoman.documents.formats.subtitles.subtitles import Line, SubtitleFormat

_TAG = r"</?\s*(?:i|b|u|s|em|strong|font|span|ruby|rt|c|v|br)\b[^<>]*>"
_STYLE = r"\{\\[^{}]*\}|\{[A-Za-z]:[^{}]*\}"
_TIME = r"\d+:\d+:\d+(?:[,.:]\d+)?"


def _escape(text: str, _: bool) -> str:
    """SubRip has no way to write a sign otherwise; only what would begin a cue, or a line, is changed."""
    return text.replace("-->", "->").replace("\r", " ")


class SubRip(SubtitleFormat):
    """There is no standard: what pysubs2 and players accept is text, all of it."""

    markup = Markup(re.compile(f"{_TAG}|{_STYLE}", re.IGNORECASE), _escape)
    times = re.compile(rf"{_TIME}\s*-->\s*{_TIME}")

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
