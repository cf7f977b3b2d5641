"""E-books (.epub, EPUB 2 and 3): the pages, titles and tables of contents of a book are translated."""

from pathlib import PurePosixPath
from posixpath import normpath
from urllib.parse import unquote

from dragoman.addons.documents.formats.archive import Archive, check_text_size
from dragoman.addons.documents.formats.archive_document import ArchiveFormat, Member, member_of_pieces
from dragoman.addons.documents.formats.epub.package import contents_pieces, package_pieces
from dragoman.addons.documents.formats.html.page import HtmlFormat
from dragoman.addons.documents.formats.xml_tree import Element, parse_tree
from dragoman.addons.documents.languages import Languages
from dragoman.base.errors import DataError

_KIND = "an e-book (EPUB)"
_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_PAGES = ("application/xhtml+xml", "text/html", "text/x-oeb1-document")
_CONTENTS = "application/x-dtbncx+xml"


def epub_format() -> ArchiveFormat:
    """Return the format. Everything but the pages, the package document and the contents (NCX) is kept."""
    return ArchiveFormat(_KIND, _members)


def _members(archive: Archive, languages: Languages) -> list[Member]:
    """Return the files with text. Raises DataError for an archive that is no e-book, or whose pages are encrypted."""
    package = _package_name(archive)
    data = archive.read(package)
    root = _tree(data, package)
    names = _items(root, package, archive)
    _check_encryption(archive, {package, *names})
    check_text_size(len(data) + sum(archive.sizes[name] for name in names))
    members = [member_of_pieces(package, data, package_pieces(root, data, languages))]
    for name, type in names.items():
        if type in _PAGES:
            members.append(_page(name, archive.read(name), languages))
        else:
            contents = archive.read(name)
            members.append(
                member_of_pieces(name, contents, contents_pieces(_tree(contents, name), contents, languages))
            )
    return members


def _tree(data: bytes, name: str) -> Element:
    return parse_tree(data, f"the part {name} of this document", has_doctype=True)


def _package_name(archive: Archive) -> str:
    """Return the name of the package document, which lists the other files."""
    if _CONTAINER not in archive.sizes:
        raise DataError(f"this archive is not {_KIND}: it has no {_CONTAINER}")
    check_text_size(archive.sizes[_CONTAINER])
    for element in _all(_tree(archive.read(_CONTAINER), _CONTAINER), "rootfile"):
        name = element.attributes.get("full-path", "")
        if name in archive.sizes:
            check_text_size(archive.sizes[name])
            return name
    raise DataError(f"this e-book is damaged: {_CONTAINER} names no package document that it contains")


def _items(root: Element, package: str, archive: Archive) -> dict[str, str]:
    """Return the type of each file with text that the package document lists and the archive contains."""
    found: dict[str, str] = {}
    for item in _all(root, "item"):
        href = unquote(item.attributes.get("href", "").partition("#")[0])
        name = normpath(str(PurePosixPath(package).parent / href))
        type = item.attributes.get("media-type", "")
        if type in (*_PAGES, _CONTENTS) and name in archive.sizes:
            found[name] = type
    return found


def _check_encryption(archive: Archive, names: set[str]) -> None:
    """Raise DataError if a file with text is encrypted. Fonts often are, which does not matter."""
    if _ENCRYPTION not in archive.sizes:
        return
    check_text_size(archive.sizes[_ENCRYPTION])
    for element in _all(_tree(archive.read(_ENCRYPTION), _ENCRYPTION), "CipherReference"):
        if unquote(element.attributes.get("URI", "")) in names:
            raise DataError("this e-book is encrypted (DRM): it can only be translated without its protection")


def _page(name: str, data: bytes, languages: Languages) -> Member:
    format = HtmlFormat(is_xml=True)
    file = format.decode(data, f"the part {name} of this document")
    parsed = format.parse(file.content, languages)
    return Member(name, parsed.parts, lambda texts: file.encode(parsed.write(texts)))


def _all(element: Element, name: str) -> list[Element]:
    """Return the elements of a local name within an element, in order."""
    found: list[Element] = []
    for child in element.elements():
        found += [child] if child.name == name else _all(child, name)
    return found
