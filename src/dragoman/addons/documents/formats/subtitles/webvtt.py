"""`WebVtt`: parses WebVTT (.vtt)."""

import html
import re
from collections.abc import Sequence

from dragoman.addons.documents.formats.html.text import unescape
from dragoman.addons.documents.formats.subtitles.lines import Line, TimedLinesParser
from dragoman.addons.documents.formats.subtitles.markup import CueMarkup, classify_html

_TIME = r"(?:\d{2,}:)?[0-5]\d:[0-5]\d\.\d{3}"
_COMMENT = re.compile(r"(?:NOTE|STYLE|REGION)(?:\s|\Z)")


def _escape(text: str, _: bool) -> str:
    return html.escape(text.replace("\r", " ").replace("\n", " "), quote=False)


class WebVtt(TimedLinesParser):
    """WebVTT (.vtt, https://www.w3.org/TR/webvtt1/). Blank lines separate blocks, and blocks with an arrow are cues.

    A block without times is not displayed (section 6.1). The pronunciations of ruby text (`<rt>`) are not translated.
    """

    markup = CueMarkup(
        re.compile(r"<rt\b[^<>]*>[^<>]*</rt>|<(?!br\s*/?>)[^<>]*>", re.IGNORECASE),
        _escape,
        classify_html,
        encoded=re.compile(r"&#?\w+;"),
        decode=unescape,
        line_break=re.compile(r"\r\n?|\n|<br\s*/?>", re.IGNORECASE),
    )
    times = re.compile(rf"({_TIME})\s+-->\s+({_TIME})(?=\s|\Z)")

    def find_text(self, lines: Sequence[Line]) -> tuple[list[bool], list[int]]:
        """See `TimedLinesParser.find_text`. The text of a cue consists of the lines after its times."""
        is_text, stray = [False] * len(lines), []
        in_cue = False
        in_comment = True  # the header of the file is treated as a comment
        for index, line in enumerate(lines):
            starts_block = index == 0 or not lines[index - 1].text
            if starts_block and index:
                in_cue, in_comment = False, _COMMENT.match(line.text) is not None
            following = lines[index + 1] if index + 1 < len(lines) else Line("", "")
            if self.has_times(line):
                in_cue, in_comment = True, False
            elif not line.text or (self.has_times(following) and (starts_block or line.text.strip().isdigit())):
                continue
            elif in_cue:
                is_text[index] = True
            elif not in_comment and any(map(str.isalpha, line.text)):
                stray.append(index)
        return is_text, stray
