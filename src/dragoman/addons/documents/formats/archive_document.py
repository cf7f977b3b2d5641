"""`ArchiveFormat`: documents that are archives, whose members with text are translated, and all others kept."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from dragoman.addons.documents.formats.archive import Archive
from dragoman.addons.documents.formats.format import DecodedFile, ParsedDocument, reject_encoding
from dragoman.addons.documents.languages import UNKNOWN, Languages
from dragoman.addons.documents.passage import Passage, raw_text
from dragoman.base.errors import ConfigError


class Member(NamedTuple):
    """A file in an archive. write: returns its bytes with the given texts, one per part."""

    name: str
    parts: Sequence[str | Passage]
    write: Callable[[Sequence[str]], bytes]


class Piece(NamedTuple):
    """Bytes `begin` to `end` of a file that may change.

    content: a passage, or text that is written if anything in the archive is translated. write: returns what is
    written for the translation of the passage.
    """

    begin: int
    end: int
    content: Passage | str
    write: Callable[[str], str] = str


def member_of_pieces(name: str, data: bytes, pieces: Iterable[Piece]) -> Member:
    """Return a file as its pieces. Those whose text stays the same, and everything between them, keep their bytes."""
    ordered = sorted(pieces, key=lambda piece: piece[:2])
    passages = [piece.content for piece in ordered if isinstance(piece.content, Passage)]
    original = [raw_text(passage) for passage in passages]

    def write(texts: Sequence[str]) -> bytes:
        given = iter(zip(texts, original, strict=True))
        return b"".join(_written(data, ordered, given))

    return Member(name, passages, write)


def _written(data: bytes, pieces: Sequence[Piece], given: Iterator[tuple[str, str]]) -> Iterator[bytes]:
    at = 0
    for piece in pieces:
        yield data[at : piece.begin]
        at = piece.end
        if isinstance(piece.content, str):
            yield piece.content.encode()
            continue
        text, original = next(given)
        yield data[piece.begin : piece.end] if text == original else piece.write(text).encode()
    yield data[at:]


def _parsed(archive: Archive, content: bytes, members: Sequence[Member]) -> ParsedDocument[bytes]:
    """Return an archive as the parts of its members. content: its bytes, which stay if no text changes."""
    parts = [part for member in members for part in member.parts]
    original = [part if isinstance(part, str) else raw_text(part) for part in parts]

    def write(texts: Sequence[str]) -> bytes:
        if list(texts) == original:
            return content
        written, at = dict[str, bytes](), 0
        for member in members:
            end = at + len(member.parts)
            new = member.write(texts[at:end])
            if new != archive.read(member.name):
                written[member.name] = new
            at = end
        return archive.replace_parts(written)

    return ParsedDocument(parts, write)


class ArchiveFormat:
    """A format whose files are archives."""

    takes_encoding = False

    def __init__(self, kind: str, members: Callable[[Archive, Languages], Sequence[Member]]) -> None:
        """kind: what the files are, for messages, such as `a workbook (.xlsx)`; members: finds those with text."""
        self._kind, self._members = kind, members

    def parse(self, content: bytes, languages: Languages = UNKNOWN) -> ParsedDocument[bytes]:
        """See `Format.parse`."""
        if not isinstance(content, bytes):
            raise ConfigError(f"{self._kind} is not text: pass its bytes, for example Path(…).read_bytes()")
        archive = Archive(content, self._kind)
        return _parsed(archive, content, self._members(archive, languages))

    def decode(
        self, data: bytes, origin: str, on_error: str = "stop", encoding: str | None = None
    ) -> DecodedFile[bytes]:
        """Return the bytes unchanged. See `Format.decode`."""
        reject_encoding(encoding, "archives")
        return DecodedFile(data, bytes)
