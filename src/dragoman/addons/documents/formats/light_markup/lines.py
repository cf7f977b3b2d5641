"""`Lines`: the lines of a text file, and `MarkupText`: the text of a block with its inline markup as a passage."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dragoman.addons.documents.passage import Escape, Passage
from dragoman.addons.documents.passage_builder import PassageBuilder

_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")
_BLANK = re.compile(r"[ \t]*+(?:(?:\r\n?|\n)[ \t]*+)++|[ \t]++")
_LEAD = re.compile(r"[ \t]*+")


class Lines:
    """The lines of a text with their line ends. at: the index of the next line.

    The first part of a line, such as the sign of a list, can be taken before the rest, whose indent is then the number
    of columns before it.
    """

    def __init__(self, text: str) -> None:
        self._lines = [match[0] for match in _LINE.finditer(text) if match[0]]
        self.at = self._columns = 0

    def __len__(self) -> int:
        return len(self._lines)

    def __bool__(self) -> bool:
        """Whether lines remain."""
        return self.at < len(self._lines)

    def line(self, ahead: int = 0) -> str:
        """Return the next line, or one after it; empty after the last one."""
        return self._lines[self.at + ahead] if self.at + ahead < len(self._lines) else ""

    def is_blank(self, ahead: int = 0) -> bool:
        """Return whether a line is blank, or after the last one."""
        return not self.line(ahead).strip()

    def indent(self, ahead: int = 0) -> int:
        """Return the number of columns before the text of a line."""
        return (0 if ahead else self._columns) + indent_of(self.line(ahead))

    @property
    def is_cut(self) -> bool:
        """Whether the first part of the next line has been taken."""
        return self._columns > 0

    def cut(self, length: int) -> str:
        """Return the first characters of the next line, whose rest is the next line then."""
        line = self._lines[self.at]
        self._lines[self.at] = line[length:]
        self._columns += len(line[:length].expandtabs())
        return line[:length]

    def take(self, count: int = 1) -> str:
        """Return the next lines, and advance."""
        taken = "".join(self._lines[self.at : self.at + count])
        self.at += count
        self._columns = 0 if count else self._columns
        return taken

    def take_indented(self, indent: int) -> str:
        """Return all lines that are blank or have more than this number of blanks, without blank lines at the end."""
        count = end = 0
        while self.at + count < len(self._lines):
            if not self.is_blank(count):
                if self.indent(count) <= indent:
                    break
                end = count + 1
            count += 1
        return self.take(end)

    def take_until(self, is_end: Callable[[str], object]) -> str:
        """Return all lines up to and with the first one that is an end, or all lines."""
        count = 0
        while self.at + count < len(self._lines):
            count += 1
            if is_end(self._lines[self.at + count - 1]):
                break
        return self.take(count)


def indent_of(line: str) -> int:
    """Return the number of blanks at the start of a line."""
    lead = _LEAD.match(line)
    assert lead is not None
    return len(lead[0].expandtabs())


class MarkupText:
    """Converts text with inline markup to passages."""

    def __init__(
        self, pattern: "re.Pattern[str]", add: Callable[[PassageBuilder, "re.Match[str]"], Any], escape: Escape
    ) -> None:
        """pattern: matches the markup. add: adds a match to a builder. escape: writes the text of a translation."""
        self._pattern, self._add, self._escape = pattern, add, escape

    def parts(self, text: str) -> Iterator[str | Passage]:
        """Yield the text before a passage, the passage, and the text after it. Text without letters is no passage."""
        core = text.strip()
        if not any(map(str.isalpha, core)):
            yield text
            return
        begin = len(text) - len(text.lstrip())
        yield text[:begin]
        builder = PassageBuilder(self._escape)
        self.fill(builder, core)
        found: list[str | Passage] = []
        builder.finish(found.append)
        yield from found
        yield text[begin + len(core) :]

    def fill(self, builder: PassageBuilder, text: str) -> None:
        """Add text with its markup to a builder."""
        at = 0
        for match in self._pattern.finditer(text):
            add_plain(builder, text[at : match.start()])
            self._add(builder, match)
            at = match.end()
        add_plain(builder, text[at:])


def add_plain(builder: PassageBuilder, text: str) -> None:
    """Add text without markup. Line ends with the blanks around them count as blanks."""
    at = 0
    for blank in _BLANK.finditer(text):
        for character in text[at : blank.start()]:
            builder.add_text(character, character)
        builder.add_blank(blank[0])
        at = blank.end()
    for character in text[at:]:
        builder.add_text(character, character)


def add_span(builder: PassageBuilder, opening: str, text: str, closing: str, fill: Callable[..., None]) -> None:
    """Add a span of markup around text. fill: adds the text; as `MarkupText.fill` or `add_plain`."""
    builder.add_mark("open", (opening,), opening, must_contain_text=True)
    fill(builder, text)
    builder.add_mark("close", (closing,), opening)


def joined(parts: Sequence[str | Passage]) -> list[str | Passage]:
    """Return parts without empty texts."""
    return [part for part in parts if part != ""]
