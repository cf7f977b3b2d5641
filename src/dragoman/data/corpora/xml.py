"""A safe push parser of XML corpora, which rejects entity declarations and never reads another file."""

from pathlib import Path
from typing import Any
from xml.parsers import expat

from dragoman.base.errors import DataError

_LONGEST_TAG = 1 << 22
"""Maximum number of bytes of a tag with its attributes, or of a comment."""


class CorpusParser:
    """Base class of push parsers. The standard library's iterparse has no line numbers and builds a tree of the file.

    Subclasses override `start`, `end` and `characters`. An external DTD may be declared, but is never read. All methods
    raise DataError with file and line for XML that is malformed, has an internal DTD, or uses unknown entities.
    """

    def __init__(self, path: Path, file_format: str) -> None:
        """file_format: name of the expected format, for messages, such as "a TMX file"."""
        self.path, self._file_format = path, file_format
        self._fed = 0
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self.start
        self._parser.EndElementHandler = self.end
        self._parser.CharacterDataHandler = self.characters
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.EntityDeclHandler = self._entity
        self._parser.SkippedEntityHandler = self._unknown_entity

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Process the start of an element."""
        raise NotImplementedError

    def end(self, tag: str) -> None:
        """Process the end of an element."""
        raise NotImplementedError

    def characters(self, text: str) -> None:
        """Process a part of the text of an element."""
        raise NotImplementedError

    def feed(self, chunk: bytes, final: bool = False) -> None:
        """Parse the next chunk of the file."""
        self._fed += len(chunk)
        try:
            self._parser.Parse(chunk, final)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise DataError(f"{self.path}, line {error.lineno}: broken XML ({reason}). Export it again.") from None
        except ValueError as error:  # the encoding is unknown to Python
            raise DataError(f"{self.path}: {error}. Convert the file to UTF-8.") from None
        if not final and self._fed - max(self._parser.CurrentByteIndex, 0) > _LONGEST_TAG:
            raise self.error(f"a tag of more than {_LONGEST_TAG} bytes. Is this {self._file_format}?")

    @property
    def line(self) -> int:
        """Current line, counted from 1."""
        return self._parser.CurrentLineNumber

    def error(self, reason: str) -> DataError:
        """Return an error that names the file and the current line."""
        return DataError(f"{self.path}, line {self.line}: {reason}")

    def _doctype(self, name: str, system: str | None, public: str | None, internal: int) -> None:
        if internal:
            raise self.error("a DTD inside the file is not allowed. Remove the [ … ] from <!DOCTYPE …>.")

    def _entity(self, *declaration: Any) -> None:
        raise self.error("entity declarations are not allowed. Export the file without a DTD.")

    def _unknown_entity(self, name: str, parameter: bool) -> None:
        if not parameter:
            raise self.error(f"unknown entity &{name};, use the character itself instead.")
