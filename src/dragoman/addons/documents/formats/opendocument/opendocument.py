"""OpenDocument texts (.odt, ISO/IEC 26300): the text of paragraphs is translated, everything else is kept."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dragoman.addons.documents.formats.archive import Archive, check_text_size
from dragoman.addons.documents.formats.format import DecodedFile, ParsedDocument, reject_encoding
from dragoman.addons.documents.formats.opendocument.language import (
    invisible_styles,
    language_changes,
    raised_styles,
)
from dragoman.addons.documents.formats.opendocument.paragraph import PartSplitter
from dragoman.addons.documents.formats.xml_tree import Element, parse_tree
from dragoman.addons.documents.languages import UNKNOWN, Languages
from dragoman.addons.documents.passage import Passage, raw_text
from dragoman.base.errors import ConfigError, DataError

_MIMETYPE = "application/vnd.oasis.opendocument.text"
_PARTS = ("content.xml", "styles.xml")
_MANIFEST = "META-INF/manifest.xml"


@dataclass(frozen=True)
class _Piece:
    """Bytes `begin` to `end` of a part. content: a passage; or a start tag, changed if anything was translated."""

    begin: int
    end: int
    content: Passage | str


class OpenDocumentFormat:
    """Translates paragraphs in the body, tables, text boxes, notes, headers and footers, and image descriptions."""

    takes_encoding = False

    def parse(self, content: bytes, languages: Languages = UNKNOWN) -> ParsedDocument[bytes]:
        """See `Format.parse`."""
        if not isinstance(content, bytes):
            raise ConfigError("an OpenDocument text is not text: pass its bytes, for example Path(…).read_bytes()")
        archive = Archive(content, "an OpenDocument text (.odt)")
        _check(archive)
        names = [name for name in _PARTS if name in archive.sizes]
        check_text_size(sum(archive.sizes[name] for name in names))
        data = {name: archive.read(name) for name in names}
        pieces = {name: list(_pieces(data[name], name, languages)) for name in names}
        passages = [each.content for name in names for each in pieces[name] if isinstance(each.content, Passage)]
        original = [raw_text(passage) for passage in passages]

        def write(texts: Sequence[str]) -> bytes:
            if list(texts) == original:
                return content
            given = iter(zip(texts, original, strict=True))
            parts = {name: _written(data[name], pieces[name], given) for name in names}
            return archive.replace_parts({name: part for name, part in parts.items() if part != data[name]})

        return ParsedDocument(passages, write)

    def decode(
        self, data: bytes, origin: str, on_error: str = "stop", encoding: str | None = None
    ) -> DecodedFile[bytes]:
        """Return the bytes unchanged. See `Format.decode`."""
        reject_encoding(encoding, "OpenDocument texts")
        return DecodedFile(data, bytes)


def _check(archive: Archive) -> None:
    """Raise DataError for an archive that is not an OpenDocument text, or has a password."""
    sizes = archive.sizes
    if "mimetype" in sizes and sizes["mimetype"] < 200:
        type = archive.read("mimetype").decode("ascii", "replace").strip()
        if type.startswith("application/") and not type.startswith(_MIMETYPE):
            raise DataError(f"this archive is not an OpenDocument text (.odt): its type is {type}")
    if "content.xml" not in sizes:
        raise DataError("this archive is not an OpenDocument text (.odt): it has no content.xml")
    check_text_size(sizes.get(_MANIFEST, 0))
    if _MANIFEST in sizes and b"encryption-data" in archive.read(_MANIFEST):
        raise DataError("this document is encrypted: save it without a password")


def _pieces(data: bytes, name: str, languages: Languages) -> Iterator[_Piece]:
    """Yield what may change in a part, in order. Raises DataError for invalid XML."""
    root = parse_tree(data, f"the part {name} of this document")
    splitter = PartSplitter(data, invisible_styles(root), raised_styles(root))
    pieces = [_Piece(*change) for change in language_changes(root, data, languages)]
    for element in _with_text(root):
        pieces += [_Piece(*paragraph) for paragraph in splitter.split(element)]
    yield from sorted(pieces, key=lambda piece: piece.begin)


def _with_text(root: Element) -> Iterator[Element]:
    """Yield the elements whose paragraphs readers see: the body, and the headers and footers of pages."""
    for element in root.elements():
        if element.name in ("body", "master-styles"):
            yield element


def _written(data: bytes, pieces: Sequence[_Piece], given: Iterator[tuple[str, str]]) -> bytes:
    """Return a changed part. given: the new and the original text of each passage."""
    written, at = [], 0
    for piece in pieces:
        written.append(data[at : piece.begin])
        at = piece.end
        if isinstance(piece.content, str):
            written.append(piece.content.encode())
            continue
        text, original = next(given)
        written.append(data[piece.begin : piece.end] if text == original else text.encode())
    return b"".join([*written, data[at:]])
