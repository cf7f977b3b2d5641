"""Corpora in TMX, the exchange format of translation memories (LISA/OSCAR, TMX 1.4b)."""

import re
from collections.abc import Iterator
from pathlib import Path

from dragoman.base.errors import DataError
from dragoman.base.log import warn
from dragoman.data.corpora.corpus import ADDRESS
from dragoman.data.corpora.items import Pair
from dragoman.data.corpora.pairs.inline_codes import CODES, LONGEST_CONTENT, Code, join_inline
from dragoman.data.corpora.pairs.units import UnitPairs, Variant
from dragoman.data.files.lines import LONGEST_LINE
from dragoman.data.files.xml import CorpusParser, read_xml

_BLANKS = re.compile(r"[ \t\r\n]+")
_MAX_LISTED_LINES = 10
_ANY_LANGUAGE = "*all*"


def read_tmx(path: Path, source_code: str | None, target_code: str | None, address: str = ADDRESS) -> Iterator[Pair]:
    """Yield the units (`tu`) of a file as pairs. The line of a pair is the line at which its unit starts.

    For each side, the variant (`tuv`) of a unit that matches the language best is used, or the first of several equal
    ones. The language is the value of `xml:lang` or `lang`; see `match_language_codes`. source_code, target_code: None
    for a file with two languages, whose source is the one that the header declares in `srclang`, or else the first. A
    unit that lacks one of the languages becomes a pair that is not `complete`. Text in `hi` is kept. Inline codes are
    removed; see `join_inline`. Each run of whitespace becomes one space. Memory does not grow with the file. An
    external DTD may be declared, but is never read.

    address: of the settings of the corpus. A unit with malformed XML is skipped with a warning, and so is the start of
    a comment without an end. Raises DataError with file and line for XML that is malformed outside of units or in most
    units, declares entities, or is not TMX, and DataError with the languages of the file if no unit contains both
    languages, or if they are to be chosen.
    """
    pairs = UnitPairs(path, source_code, target_code, address)
    parser = _UnitParser(path, pairs)
    for chunk in read_xml(path):
        parser.feed(chunk)
        yield from pairs.pop()
    parser.feed(b"", final=True)
    parser.finish()
    yield from pairs.pop()


class _UnitParser(CorpusParser):
    unit = "tu"
    parents = "<tmx><body>"

    def __init__(self, path: Path, pairs: UnitPairs) -> None:
        super().__init__(path, "a TMX file")
        self._pairs = pairs
        self._muted = 0
        self._has_root = self._has_body = self._in_unit = self._is_broken = False
        self._unclosed = 0
        self._line = self._size = 0
        self._variants: list[Variant] = []
        self._code = ""
        self._parts: list[str | Code] | None = None
        self._broken: dict[int, DataError] = {}
        self._open_markup: list[int] = []

    def finish(self) -> None:
        """Report the broken units, and finish the pairs. Raises DataError if most of the units are broken."""
        if self._broken:
            first = next(iter(self._broken.values()))
            if len(self._broken) > self._pairs.count:
                raise first
            warn(
                f"{self.path}: {len(self._broken):,} of {self._pairs.count + len(self._broken):,} units contain broken "
                f"XML and are skipped (lines {_some_lines(list(self._broken))})."
            )
        if self._open_markup:
            lines = _some_lines(self._open_markup)
            warn(f"{self.path}: comments or other markup without an end are ignored (lines {lines}).")
        self._pairs.finish()

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        if not self._has_root and name != "tmx":
            raise self.error(f"this is not a TMX file: its root element is <{tag}>, not <tmx>.")
        self._has_root = True
        if name == "header" and (code := attributes.get("srclang", _ANY_LANGUAGE)) != _ANY_LANGUAGE:
            self._pairs.declared_source = code
        elif name == "body":
            self._has_body = True
        elif name == "tu":
            if self._in_unit:
                self.skip_unit(self.error("broken XML (the preceding <tu> is not closed). Export the file again."))
                self._unclosed += 1
            self._in_unit, self._is_broken = True, False
            self._line, self._size, self._variants, self._parts = self.line, 0, [], None
        elif name == "tuv":
            self._code = attributes.get("xml:lang", attributes.get("lang", ""))
        elif name == "seg":
            self._parts, self._muted = [], 0
        elif self._parts is not None and (self._muted or name in CODES):
            if not self._muted:
                self._parts.append(Code(name, type=attributes.get("type", "")))
            self._muted += 1

    def end(self, tag: str) -> None:
        name = tag.rpartition(":")[2]
        if name == "seg" and self._parts is not None:
            text = _BLANKS.sub(" ", join_inline(self._parts)).strip(" ")
            self._parts = None
            if self._in_unit:
                self._variants.append(Variant(self._code, text))
        elif name == "tu" and self._in_unit:
            self._in_unit = False
            if not self._is_broken:
                self._pairs.add(self._line, self._variants)
                self._variants = []
        elif self._muted:
            self._muted -= 1

    def characters(self, text: str) -> None:
        if self._parts is None:
            return
        self._size += len(text)
        if self._size > LONGEST_LINE:
            raise self.error(f"a unit of more than {LONGEST_LINE} characters. Is this a translation memory?")
        if not self._muted:
            self._parts.append(text)
        elif isinstance(code := self._parts[-1], Code) and len(code.content) < LONGEST_CONTENT:
            self._parts[-1] = code._replace(content=code.content + text[:LONGEST_CONTENT])

    def ignore_markup(self, line: int, error: DataError) -> None:
        """Ignore markup between units, or drop the unit that contains it. Raises the error before the units."""
        if self._in_unit or not self._has_body:
            self.skip_unit(error)
        else:
            self._open_markup.append(line)

    def skip_unit(self, error: DataError) -> None:
        """Drop the current unit, or the unit whose start tag is broken. Raises the error if it is before the units."""
        if not self._has_body:
            raise error
        if self._in_unit or not self._unclosed:
            self._broken.setdefault(self._line if self._in_unit else self.line, error)
        else:  # the end tag of <body>, which does not match an earlier unit
            self._unclosed -= 1
        self._in_unit, self._is_broken = False, True
        self._parts, self._variants, self._muted = None, [], 0


def _some_lines(lines: list[int]) -> str:
    """Return the first line numbers of a list, separated by commas."""
    more = ", …" if len(lines) > _MAX_LISTED_LINES else ""
    return ", ".join(map(str, lines[:_MAX_LISTED_LINES])) + more
