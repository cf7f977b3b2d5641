"""Word documents (.docx, ECMA-376): the texts of their paragraphs are translated, all else stays."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from dragoman.base.errors import ConfigError, DataError
from dragoman.documents.formats.format import Format, Opened
from dragoman.documents.formats.word.package import Element, Package, kind, parsed, serialised
from dragoman.documents.formats.word.paragraph import Paragraph, written_text
from dragoman.documents.passage import Passage, as_text

LARGEST_TEXT = 1 << 24
"""Bytes of XML that are read of one document, more than a book of a thousand pages has."""

MOST_PIECES = 200_000
"""Paragraphs, runs of text and pictures that are read of one, some six seconds' work, however small the file is."""

_PIECES = ("{*}p", "{*}r", "{*}docPr")

_TYPES = "[Content_Types].xml"
_MAIN = (
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.template.main+xml",
    "application/vnd.ms-word.document.macroEnabled.main+xml",
    "application/vnd.ms-word.template.macroEnabledTemplate.main+xml",
)
_BESIDE = tuple(
    f"application/vnd.openxmlformats-officedocument.wordprocessingml.{name}+xml"
    for name in ("header", "footer", "footnotes", "endnotes")
)
_DESCRIBED = "}docPr"
_DESCRIPTIONS = ("title", "descr")


class _Place(NamedTuple):
    """Something that is translated. root: of its part; write: takes its new text."""

    root: Element
    passage: Passage
    write: Callable[[str], None]


class Word(Format[bytes]):
    """Paragraphs in text, tables, text boxes, headers, footers and notes; descriptions of pictures."""

    def opened(self, content: bytes) -> Opened[bytes]:
        if not isinstance(content, bytes):
            raise ConfigError("a Word document is no text: give its bytes, as Path(…).read_bytes() does")
        package = Package(content)
        roots = {name: parsed(package.read(name), name) for name in _parts_with_text(package)}
        _check_pieces(sum(1 for root in roots.values() for _ in root.iter(*_PIECES)))
        places = [place for root in roots.values() for place in _places(root)]
        before = [as_text(place.passage) for place in places]

        def written(texts: Sequence[str]) -> bytes:
            changed = [place for place, text, old in zip(places, texts, before, strict=True) if text != old]
            new = [text for text, old in zip(texts, before, strict=True) if text != old]
            for place, text in zip(changed, new, strict=True):
                place.write(text)
            parts = {
                name: serialised(root) for name, root in roots.items() if any(each.root is root for each in changed)
            }
            return package.with_parts(parts) if parts else content

        return Opened([place.passage for place in places], written)

    def decoded(self, data: bytes, origin: str, on_error: str) -> bytes:
        return data

    def encoded(self, content: bytes) -> bytes:
        return content


def _parts_with_text(package: Package) -> list[str]:
    """Their names, the document itself first. Raises DataError where there is none, and where there is too much."""
    sizes = package.sizes
    if _TYPES not in sizes:
        raise DataError("this archive is no Word document (.docx): it does not say of what type its parts are")
    _check_size(sizes[_TYPES])
    types = _types(parsed(package.read(_TYPES), _TYPES), sizes)
    main = [name for name, type in types.items() if type in _MAIN]
    if not main:
        raise DataError("this archive is no Word document (.docx): it has no part with a document's text")
    found = [*main, *(name for name, type in types.items() if type in _BESIDE)]
    _check_size(sum(sizes[name] for name in found))
    return found


def _check_size(size: int) -> None:
    if size > LARGEST_TEXT:
        raise DataError(
            f"this document has {size:,} bytes of text and formats unpacked, and at most {LARGEST_TEXT:,} are read: "
            "divide it"
        )


def _check_pieces(count: int) -> None:
    if count > MOST_PIECES:
        raise DataError(
            f"this document has {count:,} paragraphs, runs of text and pictures, and at most {MOST_PIECES:,} are read: "
            "divide it"
        )


def _types(root: Element, names: Iterable[str]) -> dict[str, str]:
    """Of parts by their names: as they are told one by one, or as the names end."""
    told: dict[str, str] = {}
    for each in root:
        key = each.get("PartName", "").removeprefix("/") or "." + each.get("Extension", "")
        told[key.lower()] = each.get("ContentType", "")
    return {name: told.get(name.lower(), told.get("." + name.lower().rpartition(".")[2], "")) for name in names}


def _places(root: Element) -> Iterator[_Place]:
    for element in root.iter():
        if kind(element) == "p":
            paragraph = Paragraph(element)
            if paragraph.passage is not None:
                yield _Place(root, paragraph.passage, paragraph.write)
        elif isinstance(element.tag, str) and element.tag.endswith(_DESCRIBED):
            for name in _DESCRIPTIONS:
                if any(map(str.isalpha, value := element.get(name, ""))):
                    yield _Place(root, Passage(value, value, escape=written_text), _attribute(element, name))


def _attribute(element: Element, name: str) -> Callable[[str], None]:
    return lambda text: element.set(name, text)
