"""`SubRip`: parses SubRip (.srt)."""

import re
from collections.abc import Sequence

from dragoman.addons.documents.formats.subtitles.lines import Line, TimedLinesParser
from dragoman.addons.documents.formats.subtitles.markup import CueMarkup, Tag, classify_html
from dragoman.addons.documents.formats.subtitles.overrides import classify_override

_TAG = r"</?\s*(?:i|b|u|s|em|strong|font|span|ruby|rt|c|v)\b[^<>]*>"
_TIME_TAG = r"<(?:\d+:)?\d+:\d+[.,]\d+>"
_COLOUR = r"\{/?[A-Za-z]:[^{}]*\}"
_TIME = r"\d+:\d+:\d+(?:[,.:]\d+)?"


def _escape(text: str, _: bool) -> str:
    """Replace text that would start a cue or a line, because SubRip has no escape sequences."""
    return text.replace("-->", "->").replace("\r", " ").replace("\n", " ").replace("\\N", "\\ N")


def _classify(raw: str) -> Tag:
    return classify_override(raw) if raw.startswith("{\\") else classify_html(raw)


class SubRip(TimedLinesParser):
    """SubRip (.srt). A cue has a number, times and lines of text. Players interpret tags as in HTML.

    SubRip has no standard. As in pysubs2 and in players, all text that follows the first cue's times is displayed.
    """

    markup = CueMarkup(
        re.compile(rf"{_TAG}|{_TIME_TAG}|\{{\\[^{{}}]*\}}|{_COLOUR}", re.IGNORECASE),
        _escape,
        _classify,
        line_break=re.compile(r"\r\n?|\n|(?i:<br\s*/?>)|\\N"),
    )
    times = re.compile(rf"({_TIME})\s*-->\s*({_TIME})")

    def find_text(self, lines: Sequence[Line]) -> tuple[list[bool], list[int]]:
        """See `TimedLinesParser.find_text`. A blank line does not end a cue unless a number follows."""
        is_text, stray, in_cues = [False] * len(lines), [], False
        for index, line in enumerate(lines):
            if self.has_times(line) or line.is_blank or self._is_cue_number(lines, index):
                in_cues = in_cues or self.has_times(line)
            elif in_cues:
                is_text[index] = True
            elif any(map(str.isalpha, line.text)):
                stray.append(index)
        return is_text, stray

    def _is_cue_number(self, lines: Sequence[Line], index: int) -> bool:
        return lines[index].text.strip().isdigit() and index + 1 < len(lines) and self.has_times(lines[index + 1])
