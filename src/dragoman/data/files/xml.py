"""A safe push parser of XML corpora, which rejects entity declarations and never reads another file."""

import codecs
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar
from xml.parsers import expat

from dragoman.base.errors import DataError
from dragoman.data.files.encoding import count_utf8_lines, marked_encoding, transcode
from dragoman.data.files.lines import CHUNK, gather, read_chunks
from dragoman.data.files.recognition import check_form

_LONGEST_TAG = 1 << 22
"""Maximum number of bytes of a tag with its attributes, or of a comment."""

_MARKUP = re.compile(rb"<!--|<!\[CDATA\[|<\?")
_CDATA = b"<![CDATA["
_ENDS = {b"<!--": b"-->", b"<?": b"?>", _CDATA: b"]]>"}
_NAMES = {b"<!--": "comment", b"<?": "processing instruction", _CDATA: "CDATA section"}

_ENCODING = re.compile(rb"<\?xml\s[^>]*\bencoding\s*=\s*[\"']([\w.:-]+)[\"']")
_UNMARKED = ((b"<\0?\0", "utf-16-le"), (b"\0<\0?", "utf-16-be"))


def read_xml(path: Path) -> Iterator[bytes]:
    """Yield an XML file as UTF-8, in pieces.

    The encoding is that of a byte order mark, or else the declared one, by default UTF-8 (XML 1.0, appendix F). Raises
    DataError if the file cannot be read, is evidently not XML, or is in another encoding than it declares.
    """
    chunks = read_chunks(path, "xml")
    head = gather(chunks, CHUNK)
    is_whole = len(head) < CHUNK
    codec = _encoding(head, path)
    mark = marked_encoding(head)
    chunks = chain([head[len(mark[0]) if mark is not None else 0 :]], chunks)
    if codec is not None:
        chunks = transcode(chunks, codec)
    head = next(chunks, b"")
    check_form(head[:CHUNK], path, "xml", is_whole)
    count_utf8_lines(head[:CHUNK], is_whole).check(path, is_whole)
    yield head
    yield from chunks


def _encoding(head: bytes, path: Path) -> str | None:
    """Return the encoding of a file; None for UTF-8. Raises DataError for an unknown one."""
    mark = marked_encoding(head)
    if mark is not None:
        return None if mark[1] == "utf-8" else mark[1]
    for start, codec in _UNMARKED:
        if head.startswith(start):
            return codec
    declaration = _ENCODING.match(head)
    if declaration is None:
        return None
    name = declaration[1].decode()
    try:
        codec = codecs.lookup(name).name
    except LookupError:
        raise DataError(f"{path}: the encoding {name} is unknown. Convert the file to UTF-8.") from None
    # the declaration itself is in ASCII, so a file that declares UTF-16 has been converted
    return None if codec in ("utf-8", "ascii") or codec.startswith(("utf-16", "utf-32")) else codec


class CorpusParser:
    """Base class of push parsers. The standard library's iterparse has no line numbers and builds a tree of the file.

    Subclasses override `start`, `end` and `characters`. An external DTD may be declared, but is never read. All methods
    raise DataError with file and line for XML that is malformed, has an internal DTD, or uses unknown entities.

    If a subclass sets `unit`, the name of an element, malformed XML inside the root element only drops the unit that
    contains it: `skip_unit` is called, and parsing resumes at the next start tag of a unit. The start of a comment
    without an end is ignored, so that the units after it are parsed. This requires the end of the file: a file that
    ends inside an element is malformed as a whole.
    """

    unit: ClassVar[str | None] = None
    parents: ClassVar[str] = ""
    """Start tags of the elements that contain the units, from the root."""

    def __init__(self, path: Path, file_format: str) -> None:
        """file_format: name of the expected format, for messages, such as "a TMX file"."""
        self.path, self._file_format = path, file_format
        root = re.match(r"<(\w+)", self.parents)
        self._end_of_file = rb"</(?:\w+:)?%b\s*>\s*$" % (b"" if root is None else root[1].encode())
        self._lines_before = 0
        self._fed = 0
        self._previous = b""  # the bytes from the start of an unfinished tag, comment or CDATA section
        self._cdata: int | None = None
        self._skipping = False
        self._failure: DataError | None = None
        self._parser = self._new_parser()

    def _new_parser(self) -> expat.XMLParserType:
        parser = expat.ParserCreate("utf-8")
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.characters
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = self._entity
        parser.SkippedEntityHandler = self._unknown_entity
        parser.StartCdataSectionHandler = self._start_cdata
        parser.EndCdataSectionHandler = self._end_cdata
        return parser

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Process the start of an element."""
        raise NotImplementedError

    def end(self, tag: str) -> None:
        """Process the end of an element."""
        raise NotImplementedError

    def characters(self, text: str) -> None:
        """Process a part of the text of an element."""
        raise NotImplementedError

    def skip_unit(self, error: DataError) -> None:
        """Drop the current unit because of malformed XML. Raises `error` if parsing must not resume."""
        raise error

    def ignore_markup(self, line: int, error: DataError) -> None:
        """Report a comment or similar markup without an end, whose start is ignored. line: the line of its start."""
        self.skip_unit(error)

    def feed(self, chunk: bytes, final: bool = False) -> None:
        """Parse the next chunk of the file, which is UTF-8."""
        data, at_unit = chunk, False
        while True:
            if self._skipping:
                found = self._find_unit(self._previous + data)
                if found is None:
                    if final and self._failure is not None and not re.search(self._end_of_file, self._previous):
                        raise self._failure
                    return
                data, at_unit = found, True
            try:
                self._parser.Parse(data, final)
            except expat.ExpatError as error:
                data = self._skip(error, data, at_unit, final)
                continue
            unparsed = self._unparsed(data)
            if final or len(unparsed) <= _LONGEST_TAG:
                break
            failure = self.error(f"a tag of more than {_LONGEST_TAG} bytes. Is this {self._file_format}?")
            if self.unit is None or _MARKUP.match(unparsed) is None:
                raise failure
            data = self._skip_markup(unparsed, self.line)
        self._fed += len(data)
        self._previous = unparsed

    def _unparsed(self, data: bytes) -> bytes:
        """Return the bytes from the start of an unfinished tag, comment or CDATA section, of which `data` are the last.

        Most chunks end within a tag or a text.
        """
        start = self._parser.CurrentByteIndex if self._cdata is None else self._cdata
        length = self._fed + len(data) - max(start, 0)
        return data[len(data) - length :] if length <= len(data) else (self._previous + data)[-length:]

    def _skip(self, error: expat.ExpatError, data: bytes, at_unit: bool, final: bool) -> bytes:
        """Skip the unit with an error, and return the bytes in which the next unit is searched.

        at_unit: whether the data start with the start tag of the unit.
        """
        reason = expat.ErrorString(error.code)
        line = self._lines_before + error.lineno
        failure = DataError(f"{self.path}, line {line}: broken XML ({reason}). Export it again.")
        unparsed = self._previous + data
        position = self._parser.ErrorByteIndex - self._fed + len(self._previous)
        opened = _unclosed_markup(unparsed, position)
        if self.unit is not None and opened is not None:
            return self._skip_markup(unparsed[opened:], line - unparsed.count(b"\n", opened, position))
        if self.unit is None or (final and not data):
            raise failure
        self.skip_unit(failure)
        start = position - len(self._previous)
        if start < 0:  # the element starts in the previous chunk
            data, start = unparsed, max(0, position)
        self._resume_at(line, failure)
        if at_unit and start == 0:
            start = 1
        return data[start:]

    def _skip_markup(self, unparsed: bytes, line: int) -> bytes:
        """Ignore the start of a comment or other markup without an end, and return the bytes that follow it.

        unparsed: the bytes from the start of the markup on. line: the line at which it starts.
        """
        start = next(start for start in _ENDS if unparsed.startswith(start))
        failure = DataError(
            f"{self.path}, line {line}: the {_NAMES[start]} that starts here is not closed. Close it with "
            f"{_ENDS[start].decode()}."
        )
        self.ignore_markup(line, failure)
        self._resume_at(line, failure)
        return unparsed[len(start) :]

    def _resume_at(self, line: int, failure: DataError) -> None:
        """Search the next unit from a line on."""
        self._lines_before = line - 1
        self._skipping, self._failure, self._previous, self._cdata = True, failure, b"", None

    def _find_unit(self, data: bytes) -> bytes | None:
        """Return the data from the start of the next unit; None if no unit starts in the data."""
        match = re.search(rb"<(?:\w+:)?%b[\s/>]" % (self.unit or "").encode(), data)
        if match is None:
            kept = len(data) - min(len(data), _LONGEST_UNIT_TAG)
            self._lines_before += data.count(b"\n", 0, kept)
            self._previous = data[kept:]
            return None
        self._lines_before += data.count(b"\n", 0, match.start())
        self._skipping, self._previous = False, b""
        self._parser = self._new_parser()
        self._parser.Parse(self.parents.encode(), False)
        self._fed = len(self.parents)
        return data[match.start() :]

    @property
    def line(self) -> int:
        """Current line, counted from 1."""
        return self._lines_before + self._parser.CurrentLineNumber

    def error(self, reason: str) -> DataError:
        """Return an error that names the file and the current line."""
        return DataError(f"{self.path}, line {self.line}: {reason}")

    def _start_cdata(self) -> None:
        self._cdata = self._parser.CurrentByteIndex

    def _end_cdata(self) -> None:
        self._cdata = None

    def _doctype(self, name: str, system: str | None, public: str | None, internal: int) -> None:
        if internal:
            raise self.error("a DTD inside the file is not allowed. Remove the [ … ] from <!DOCTYPE …>.")

    def _entity(self, *declaration: Any) -> None:
        raise self.error("entity declarations are not allowed. Export the file without a DTD.")

    def _unknown_entity(self, name: str, parameter: bool) -> None:
        if not parameter:
            self.skip_unit(self.error(f"unknown entity &{name};, use the character itself instead."))


_LONGEST_UNIT_TAG = 64
"""Number of bytes kept while a unit is searched, because its start tag may extend into the next chunk."""


def _unclosed_markup(unparsed: bytes, position: int) -> int | None:
    """Return the start of the comment or other markup without an end in which an error occurred, or None.

    Text before the error is well formed, so that `<!` and `<?` always start such markup.
    """
    match = _MARKUP.search(unparsed, 0, position + len(_CDATA))
    while match is not None and match.start() <= position:
        end = unparsed.find(_ENDS[match[0]], match.end(), position)
        if end < 0:
            return match.start()
        match = _MARKUP.search(unparsed, end, position + len(_CDATA))
    return None
