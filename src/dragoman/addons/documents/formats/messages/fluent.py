"""Messages of Project Fluent (.ftl): texts are translated; identifiers, placeables and comments are kept.

Syntax: https://github.com/projectfluent/fluent/blob/master/spec/fluent.ebnf. Each variant of a selector is a text
of its own.
"""

import re
from collections.abc import Callable, Iterator

from dragoman.addons.documents.formats.format import ParsedDocument
from dragoman.addons.documents.formats.messages.message import LONGEST_PLACEHOLDER
from dragoman.addons.documents.formats.messages.values import MessageValue, line_of, parse_values
from dragoman.addons.documents.languages import Languages
from dragoman.base.errors import DataError

_DEEPEST = 20
"""The deepest nesting of placeables that is parsed."""

_ENTRY = re.compile(r"(?P<id>-?[A-Za-z][\w-]*)[ ]*=[ ]*|(?P<attribute>[ ]+\.[A-Za-z][\w-]*)[ ]*=[ ]*")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|\Z)")
_STRING = re.compile(r'"(?:[^"\\\r\n]|\\.)*+"')
_VARIANT = re.compile(r"[ \t\r\n]*+\*?\[[ \t\r\n]*+[^\[\]{}\s]++[ \t\r\n]*+\][ ]*+")
_VARIANT_LINE = re.compile(r"[ ]*(?:\*?\[|\}|\.[A-Za-z])")
_BLANKS = re.compile(r"[ \t\r\n]*+")
_PLACEABLE = re.compile(r"\{[^{}]*+\}")
_BRACE = re.compile(r"[{}]")
_LINES = re.compile(r"[ \t]*+(?:(?:\r\n|\n|\r)[ \t]*+)++")
_LINE_START = re.compile(r"\A(?=[\[*.])")
_EMPTY = '{""}'
"""A placeable without text, which a line begins with that would otherwise be a variant or an attribute."""


def parse_fluent(text: str, languages: Languages) -> ParsedDocument[str]:
    """Parse a file. Raises DataError for braces that are not closed, with the line.

    Lines that begin no message belong to none, as in Fluent itself, and are kept. Texts that are divided into lines are
    written in one line; those of terms (`-brand`) are kept, because they are usually names.
    """
    values = list[MessageValue]()
    at = 0
    is_term = False
    while at < len(text):
        found = _ENTRY.match(text, at)
        if found is None:
            line = _LINE.match(text, at)
            assert line is not None
            at = line.end()
            continue
        is_term = found["id"].startswith("-") if found["id"] else is_term
        pattern = _Pattern(text, found.end())
        pattern.read()
        at = pattern.at
        values += [] if is_term else pattern.values
    return parse_values(text, sorted(values, key=lambda value: value.begin), languages)


class _Pattern:
    """The text of a message or an attribute. at: the position after it; values: the texts in it."""

    def __init__(self, text: str, begin: int) -> None:
        self._text, self.at = text, begin
        self.values: list[MessageValue] = []

    def read(self) -> None:
        """Read up to the line that does not belong to the pattern."""
        self._read(0)

    def _read(self, depth: int) -> None:
        """Read a pattern up to the end of its last line, or to the line with the next variant."""
        text, begin = self._text, self.at
        end = begin
        while self.at < len(text):
            character = text[self.at]
            if character == "{":
                start = self.at
                inner = self._placeable(depth)
                if inner:  # the text before a selector, and what follows it, are texts of their own
                    self._add(begin, start)
                    self.values += inner
                    begin = self.at
                end = self.at
            elif character in "\r\n":
                if not self._continues(depth):
                    break
            elif character == "}":
                if depth:
                    break
                self._fail(self.at, "a brace is closed that was not opened")
            else:
                self.at += 1
                end = self.at
        self._add(begin, end)
        if self.at < len(text) and not depth:
            line = _LINE.match(text, self.at)
            assert line is not None
            self.at = line.end()

    def _continues(self, depth: int) -> bool:
        """Advance past line breaks if the next line belongs to the pattern: it is indented, and no variant."""
        blanks = _BLANKS.match(self._text, self.at)
        assert blanks is not None
        after = blanks.end()
        start = blanks.start() + max(blanks[0].rfind("\n"), blanks[0].rfind("\r")) + 1
        is_placeable = self._text.startswith("{", after)
        if after == len(self._text) or (after == start and not is_placeable) or _VARIANT_LINE.match(self._text, start):
            if depth:
                self.at = after
            return False
        self.at = after
        return True

    def _placeable(self, depth: int) -> list[MessageValue]:
        """Read a placeable, and return the texts of its variants if it is a selector."""
        begin, text = self.at, self._text
        if depth >= _DEEPEST:
            self._fail(begin, "placeables are nested too deeply")
        self.at += 1
        found: list[MessageValue] = []
        while self.at < len(text):
            character = text[self.at]
            if character == "}":
                self.at += 1
                return found
            if character == '"':
                string = _STRING.match(text, self.at)
                self.at = self.at + 1 if string is None else string.end()
            elif character == "{":
                found += self._placeable(depth + 1)
            elif text.startswith("->", self.at):
                self.at += 2
                found += self._variants(depth + 1)
            else:
                self.at += 1
        self._fail(begin, "a brace is not closed")
        raise AssertionError

    def _variants(self, depth: int) -> Iterator[MessageValue]:
        while (variant := _VARIANT.match(self._text, self.at)) is not None:
            inner = _Pattern(self._text, variant.end())
            inner._read(depth)
            self.at = inner.at
            yield from inner.values

    def _add(self, begin: int, end: int) -> None:
        """Add the text between two positions, without the blanks around it.

        A text with braces in the strings of its placeables is kept, and so is one with a placeable that is too long to
        be recognised in messages.
        """
        raw = self._text[begin:end]
        stripped = raw.strip()
        placeables = _PLACEABLE.findall(stripped)
        is_short = max(map(len, placeables), default=0) <= LONGEST_PLACEHOLDER
        if stripped and is_short and not _BRACE.search(_PLACEABLE.sub("", stripped)):
            begin += len(raw) - len(raw.lstrip())
            string = _LINES.sub(lambda found: " " if len(found[0].splitlines()) < 3 else "\n\n", stripped)
            self.values.append(MessageValue(begin, begin + len(stripped), string, _writer(string)))

    def _fail(self, position: int, problem: str) -> None:
        raise DataError(f"the document, line {line_of(self._text, position)}: {problem}")


def _writer(source: str) -> Callable[[str], str]:
    """Return a function that writes a translation. Braces that are not those of the source's placeables are quoted."""
    placeables = set(_PLACEABLE.findall(source))

    def write(string: str) -> str:
        pieces, at = [], 0
        for found in _PLACEABLE.finditer(string):
            if found[0] in placeables:
                pieces += [_quoted(string[at : found.start()]), found[0]]
                at = found.end()
        written = "".join([*pieces, _quoted(string[at:])])
        first, *others = written.split("\n")
        return "\n".join([first, *(f"    {_LINE_START.sub(_EMPTY, line)}" if line else "" for line in others)])

    return write


def _quoted(text: str) -> str:
    return re.sub(r"[{}]", lambda brace: f'{{"{brace[0]}"}}', text)
