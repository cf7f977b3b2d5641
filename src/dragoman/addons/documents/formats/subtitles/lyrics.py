"""`parse_lyrics`: parses lyrics with times (.lrc)."""

import re

from dragoman.addons.documents.formats.format import ParsedDocument
from dragoman.addons.documents.formats.subtitles.cue import Cue
from dragoman.addons.documents.formats.subtitles.document import parse_subtitles
from dragoman.addons.documents.formats.subtitles.lines import split_lines
from dragoman.addons.documents.formats.subtitles.markup import CueMarkup, Tag
from dragoman.addons.documents.languages import UNKNOWN, Languages
from dragoman.base.log import warn

_TIME = r"(?:\d+:)?\d+:\d+(?:[.:]\d+)?"
_TIMED_LINE = re.compile(rf"\s*(?:\[{_TIME}\]\s*)+")


def _escape(text: str, _: bool) -> str:
    return text.replace("\r", " ").replace("\n", " ")


_MARKUP = CueMarkup(re.compile(rf"<{_TIME}>|\[{_TIME}\]"), _escape, lambda _: Tag("break"))


def parse_lyrics(text: str, languages: Languages = UNKNOWN) -> ParsedDocument[str]:
    """Parse a file. The text after the times of a line is translated; times within it keep their order.

    Each line is translated separately, because lyrics seldom have punctuation. Lines without times, such as the title
    (`[ti:…]`), are kept.
    """
    pieces: list[str | Cue] = []
    for line, end in split_lines(text):
        times = _TIMED_LINE.match(line)
        pieces += [line + end] if times is None else [times[0], Cue(line[times.end() :]), end]
    if not any(isinstance(piece, Cue) for piece in pieces) and text.strip():
        warn("no line has a time such as [00:12.00], so this file has no lyrics and remains unchanged")
    return parse_subtitles(pieces, _MARKUP, languages.source)
