"""`CueMarkup`: the markup in the text of a subtitle format's cues."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from dragoman.addons.documents.passage import Escape, MarkKind

TokenKind = Literal["markup", "line_break", "blank", "encoded", "word", "other"]


class Token(NamedTuple):
    """A piece of a cue's text. raw: its form in the file.

    kind: `markup` that is not displayed, `line_break`, `blank` (whitespace), `encoded` (a character reference or an
    escape sequence), `word` (letters and digits), or any `other` character.
    """

    kind: TokenKind
    raw: str


class Tag(NamedTuple):
    """The role of a piece of markup. name: identifies the span that it opens or closes.

    starts_section: whether the span also keeps its position among the other timed pieces of the text.
    """

    kind: MarkKind
    name: str = ""
    starts_section: bool = False


@dataclass(frozen=True)
class CueMarkup:
    """The markup of cues in a subtitle format.

    hidden: matches tags and other text that is not displayed. escape: encodes the text of a translation. classify:
    returns the role of hidden text. encoded: matches character references and escape sequences, which `decode`
    decodes. line_break: matches line breaks within a cue. new_text: matches hidden text with which a line starts that
    does not continue the line before it. The patterns contain no groups that capture.
    """

    hidden: re.Pattern[str]
    escape: Escape
    classify: Callable[[str], Tag]
    encoded: re.Pattern[str] = re.compile(r"(?!)")
    decode: Callable[[str], str] = str
    line_break: re.Pattern[str] = re.compile(r"\r\n?|\n")
    new_text: re.Pattern[str] = re.compile(r"<v\b")

    @cached_property
    def _tokens(self) -> re.Pattern[str]:
        return re.compile(
            rf"(?P<markup>{_source(self.hidden)})|(?P<line_break>{_source(self.line_break)})|(?P<blank>[^\S\xa0])"
            rf"|(?P<encoded>{_source(self.encoded)})|(?P<word>\w+)|(?P<other>.)",
            re.DOTALL,
        )

    def tokens(self, text: str) -> Iterator[Token]:
        """Divide the text of a cue into its pieces."""
        for found in self._tokens.finditer(text):
            yield Token(found.lastgroup, found[0])  # type: ignore[arg-type]

    def is_visible(self, token: Token) -> bool:
        """Return whether a piece of text is displayed and not blank."""
        return token.kind in ("word", "other") or (token.kind == "encoded" and bool(self.decode(token.raw).strip()))

    def visible(self, text: str) -> str:
        """Return a text without its markup, with blanks in place of line breaks."""
        return "".join(
            " " if kind == "line_break" else self.decode(raw) if kind == "encoded" else raw
            for kind, raw in self.tokens(text)
            if kind != "markup"
        )


def _source(pattern: re.Pattern[str]) -> str:
    """Return a pattern as part of another pattern."""
    return f"(?i:{pattern.pattern})" if pattern.flags & re.IGNORECASE else f"(?:{pattern.pattern})"


_HTML_TAG = re.compile(r"<(/?)\s*([A-Za-z]+)")
_TIME = re.compile(r"<[\d:.,]+>")


def classify_html(raw: str) -> Tag:
    """Return the role of a tag as in HTML. Times within the text keep their order, and voices are not spans."""
    if _TIME.fullmatch(raw):
        return Tag("break")
    found = _HTML_TAG.match(raw)
    if found is None or found[2].lower() in ("v", "br") or raw.endswith("/>"):
        return Tag("empty")
    return Tag("close" if found[1] else "open", found[2].lower())
