"""WebVTT (.vtt, https://www.w3.org/TR/webvtt1/): blocks between blank lines, those with an arrow are cues."""

import html
import re
from collections.abc import Sequence

from dragoman.documents.formats.subtitles.cue_text import Markup
from dragoman.documents.formats.subtitles.subtitles import Line, SubtitleFormat

_TIME = r"(?:\d{2,}:)?[0-5]\d:[0-5]\d\.\d{3}"
_REMARK = re.compile(r"(?:NOTE|STYLE|REGION)(?:\s|\Z)")


def _escape(text: str, _: bool) -> str:
    return html.escape(text.replace("\r", " "), quote=False)


class WebVtt(SubtitleFormat):
    """A blank line ends a cue; what a block without times has is not shown (section 6.1)."""

    markup = Markup(re.compile(r"<[^<>]*>"), _escape, entities=True)
    times = re.compile(rf"{_TIME}\s+-->\s+{_TIME}(?:\s|\Z)")

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
