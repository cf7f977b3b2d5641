"""OpenDocument texts, presentations and spreadsheets (.odt, .odp, .ods, ISO/IEC 26300): paragraphs are translated."""

from collections.abc import Iterator

from dragoman.addons.documents.formats.archive import Archive, check_text_size
from dragoman.addons.documents.formats.archive_document import ArchiveFormat, Member, Piece, member_of_pieces
from dragoman.addons.documents.formats.opendocument.language import (
    direction_changes,
    invisible_styles,
    language_changes,
    raised_styles,
)
from dragoman.addons.documents.formats.opendocument.paragraph import PartSplitter
from dragoman.addons.documents.formats.xml_tree import Element, parse_tree
from dragoman.addons.documents.languages import Languages
from dragoman.base.errors import DataError

_MIMETYPE = "application/vnd.oasis.opendocument."
_PARTS = ("content.xml", "styles.xml")
_MANIFEST = "META-INF/manifest.xml"


def open_document_format(type: str, kind: str) -> ArchiveFormat:
    """Return the format of a type of OpenDocument files, such as `text`. kind: their name with its article.

    Translated are paragraphs in the body, tables, cells, text boxes, notes, headers and footers, and descriptions of
    images; not the results of formulas, numbers and dates.
    """

    def members(archive: Archive, languages: Languages) -> list[Member]:
        _check(archive, type, kind)
        names = [name for name in _PARTS if name in archive.sizes]
        check_text_size(sum(archive.sizes[name] for name in names))
        data = {name: archive.read(name) for name in names}
        return [member_of_pieces(name, data[name], _pieces(data[name], name, languages)) for name in names]

    return ArchiveFormat(kind, members)


def _check(archive: Archive, type: str, kind: str) -> None:
    """Raise DataError for an archive that is not an OpenDocument file of the type, or has a password."""
    sizes = archive.sizes
    if "mimetype" in sizes and sizes["mimetype"] < 200:
        declared = archive.read("mimetype").decode("ascii", "replace").strip()
        if declared.startswith("application/") and not declared.startswith(_MIMETYPE + type):
            raise DataError(f"this archive is not {kind}: its type is {declared}")
    if "content.xml" not in sizes:
        raise DataError(f"this archive is not {kind}: it has no content.xml")
    check_text_size(sizes.get(_MANIFEST, 0))
    if _MANIFEST in sizes and b"encryption-data" in archive.read(_MANIFEST):
        raise DataError("this document is encrypted: save it without a password")


def _pieces(data: bytes, name: str, languages: Languages) -> Iterator[Piece]:
    """Yield what may change in a part. Raises DataError for invalid XML."""
    root = parse_tree(data, f"the part {name} of this document")
    splitter = PartSplitter(data, invisible_styles(root), raised_styles(root))
    for change in (*language_changes(root, data, languages), *direction_changes(root, data, languages)):
        yield Piece(*change)
    for element in _with_text(root):
        for paragraph in splitter.split(element):
            yield Piece(*paragraph)


def _with_text(root: Element) -> Iterator[Element]:
    """Yield the elements whose paragraphs readers see: the body, and the headers and footers of pages."""
    for element in root.elements():
        if element.name in ("body", "master-styles"):
            yield element
