"""Corpora in TMX, the exchange format of translation memories (LISA/OSCAR, TMX 1.4b)."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.parsers import expat

from dragoman.base.errors import DataError
from dragoman.data.corpora.items import Pair
from dragoman.data.corpora.lines import LONGEST_LINE, read_chunks

_CODES = frozenset({"bpt", "ept", "it", "ph", "ut"})
"""Inline elements that contain codes of the program that wrote the file. `hi` is not included, because it contains
text."""

_LONGEST_TAG = 1 << 22
"""Maximum number of bytes of a tag with its attributes, or of a comment."""

_BLANKS = re.compile(r"[ \t\r\n]+")


def read_tmx(path: Path, source_code: str, target_code: str) -> Iterator[Pair]:
    """Yield the units (`tu`) of a file as pairs. The line of a pair is the line at which its unit starts.

    The first variant (`tuv`) of a unit in each language is used. The language is the value of `xml:lang` or `lang`,
    ignoring case. The code en matches en-US, but en-US does not match en. A unit that lacks one of the languages
    becomes a pair that is not `complete`. Text in `hi` is kept, but text in the inline codes `bpt`, `ept`, `it`, `ph`
    and `ut` is removed. Each run of whitespace becomes one space. Memory does not grow with the file. An external DTD
    may be declared, but is never read. Raises DataError with file and line for XML that is malformed, declares
    entities, or is not TMX.
    """
    parser = _UnitParser(path, source_code.lower(), target_code.lower())
    for chunk in read_chunks(path):
        parser.feed(chunk)
        yield from parser.pop_pairs()
    parser.feed(b"", final=True)
    yield from parser.pop_pairs()


class _UnitParser:
    """A push parser. The standard library's iterparse has no line numbers and builds the tree of the whole file."""

    def __init__(self, path: Path, *codes: str) -> None:
        self._path, self._codes = path, codes
        self._pairs: list[Pair] = []
        self._fed = 0
        self._depth = self._muted = 0
        self._line = self._size = 0
        self._sides: list[str | None] = []
        self._code = ""
        self._text: list[str] | None = None
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.EntityDeclHandler = self._entity
        self._parser.SkippedEntityHandler = self._unknown_entity

    def feed(self, chunk: bytes, final: bool = False) -> None:
        """Parse the next chunk of the file. Raises DataError for XML that is malformed or not accepted."""
        self._fed += len(chunk)
        try:
            self._parser.Parse(chunk, final)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise DataError(f"{self._path}, line {error.lineno}: broken XML ({reason}). Export it again.") from None
        except ValueError as error:  # the encoding is unknown to Python
            raise DataError(f"{self._path}: {error}. Convert the file to UTF-8.") from None
        if not final and self._fed - max(self._parser.CurrentByteIndex, 0) > _LONGEST_TAG:
            raise self._error(f"a tag of more than {_LONGEST_TAG} bytes. Is this a TMX file?")

    def pop_pairs(self) -> list[Pair]:
        """Return the pairs that were completed since the last call."""
        pairs, self._pairs = self._pairs, []
        return pairs

    def _error(self, reason: str) -> DataError:
        return DataError(f"{self._path}, line {self._parser.CurrentLineNumber}: {reason}")

    def _doctype(self, name: str, system: str | None, public: str | None, internal: int) -> None:
        if internal:
            raise self._error("a DTD inside the file is not allowed. Remove the [ … ] from <!DOCTYPE …>.")

    def _entity(self, *declaration: Any) -> None:
        raise self._error("entity declarations are not allowed. Export the file without a DTD.")

    def _unknown_entity(self, name: str, parameter: bool) -> None:
        if not parameter:
            raise self._error(f"unknown entity &{name};, use the character itself instead.")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        self._depth += 1
        if self._depth == 1 and name != "tmx":
            raise self._error(f"this is not a TMX file: its root element is <{tag}>, not <tmx>.")
        if name == "tu":
            self._line, self._size, self._sides = self._parser.CurrentLineNumber, 0, [None, None]
        elif name == "tuv":
            self._code = attributes.get("xml:lang", attributes.get("lang", "")).lower()
        elif name == "seg":
            self._text, self._muted = [], 0
        elif self._text is not None and (self._muted or name in _CODES):
            self._muted += 1

    def _end(self, tag: str) -> None:
        name = tag.rpartition(":")[2]
        self._depth -= 1
        if name == "seg" and self._text is not None:
            text = _BLANKS.sub(" ", "".join(self._text)).strip(" ")
            self._text = None
            for side, code in enumerate(self._codes):
                if self._sides and self._sides[side] is None and _matches(self._code, code):
                    self._sides[side] = text
        elif name == "tu" and self._sides:
            source, target = self._sides
            complete = source is not None and target is not None
            self._pairs.append(Pair(self._line, source or "", target or "", complete))
            self._sides = []
        elif self._muted:
            self._muted -= 1

    def _characters(self, text: str) -> None:
        if self._text is not None and not self._muted:
            self._size += len(text)
            if self._size > LONGEST_LINE:
                raise self._error(f"a unit of more than {LONGEST_LINE} characters. Is this a translation memory?")
            self._text.append(text)


def _matches(code: str, language: str) -> bool:
    """Return whether the language code of a variant denotes `language` or a regional variety of it."""
    return code == language or re.split("[-_]", code, maxsplit=1)[0] == language
