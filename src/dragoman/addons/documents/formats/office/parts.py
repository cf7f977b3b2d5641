"""The parts of Office archives (ECMA-376 part 2), the paragraphs and descriptions of drawings in them."""

from collections.abc import Iterator

from dragoman.addons.documents.formats.archive import Archive, check_text_size
from dragoman.addons.documents.formats.archive_document import Member, Piece, member_of_pieces
from dragoman.addons.documents.formats.office.runs import run_piece
from dragoman.addons.documents.formats.xml_tree import (
    Element,
    attribute_span,
    escape_attribute,
    parse_tree,
    with_attribute,
)
from dragoman.addons.documents.languages import Direction, Languages, with_region
from dragoman.addons.documents.passage import Passage
from dragoman.base.errors import DataError
from dragoman.text.languages.codes import is_same_language

_TYPES = "[Content_Types].xml"
_DRAWING = (
    "http://schemas.openxmlformats.org/drawingml/2006/main",
    "http://purl.oclc.org/ooxml/drawingml/main",  # "Strict Open XML"
)
_DRAWN_TYPES = (
    "application/vnd.openxmlformats-officedocument.drawingml.chart+xml",
    "application/vnd.openxmlformats-officedocument.drawingml.diagramData+xml",
    "application/vnd.ms-office.drawingml.diagramDrawing+xml",
)
"""Content types of charts and of diagrams (SmartArt)."""

_DESCRIPTIONS = ("title", "descr")


def part_types(archive: Archive, main: tuple[str, ...], kind: str) -> dict[str, str]:
    """Return the content type of each part. Raises DataError if none is of a main type. kind: for this message."""
    if _TYPES not in archive.sizes:
        raise DataError(f"this archive is not {kind}: it does not declare the types of its parts")
    check_text_size(archive.sizes[_TYPES])
    declared = {
        (each.attributes.get("PartName", "").removeprefix("/") or "." + each.attributes.get("Extension", "")).lower(): (
            each.attributes.get("ContentType", "")
        )
        for each in parse_tree(archive.read(_TYPES), f"the part {_TYPES} of this document").elements()
    }
    types = {
        name: declared.get(name.lower(), declared.get("." + name.lower().rpartition(".")[2], ""))
        for name in archive.sizes
    }
    if not any(type in main for type in types.values()):
        raise DataError(f"this archive is not {kind}: it has no main part")
    return types


def drawn_members(
    archive: Archive, types: dict[str, str], kinds: tuple[str, ...], languages: Languages
) -> list[Member]:
    """Return the parts of some content types, and charts and diagrams, with the paragraphs and descriptions in them."""
    names = [name for name, type in types.items() if type in (*kinds, *_DRAWN_TYPES)]
    check_text_size(sum(archive.sizes[name] for name in names))
    members = []
    for name in names:
        data = archive.read(name)
        root = parse_tree(data, f"the part {name} of this document")
        members.append(member_of_pieces(name, data, drawn_pieces(root, data, languages)))
    return members


def drawn_pieces(element: Element, data: bytes, languages: Languages) -> Iterator[Piece]:
    """Yield the paragraphs of DrawingML in an element, and the descriptions of its images."""
    for child in element.elements():
        if child.name == "p" and child.space in _DRAWING:
            yield from _paragraph_pieces(child, data, languages)
            continue
        if child.name == "cNvPr":
            for name in _DESCRIPTIONS:
                if any(map(str.isalpha, text := child.attributes.get(name, ""))):
                    yield Piece(*attribute_span(data, child, name), Passage(text, text, escape=escape_attribute))
        yield from drawn_pieces(child, data, languages)


def _paragraph_pieces(paragraph: Element, data: bytes, languages: Languages) -> Iterator[Piece]:
    nodes = [child for child in paragraph.elements() if child.name not in ("pPr", "endParaRPr")]
    piece = run_piece(data, nodes, (nodes[0].begin, nodes[-1].end), languages.target) if nodes else None
    if piece is None:
        return
    if languages.new_direction is not None:
        yield _direction_piece(paragraph, data, languages.new_direction)
    yield piece
    last = paragraph.first("endParaRPr")
    written = None if last is None else last.attributes.get("lang")
    if last is None or not written or languages.source is None or languages.target is None:
        return
    if is_same_language(written, languages.source):
        tag = "-".join(filter(None, with_region(languages.target)))
        yield Piece(*attribute_span(data, last, "lang"), tag)


def _direction_piece(paragraph: Element, data: bytes, direction: Direction) -> Piece:
    """Return the properties of a paragraph in another direction, with its alignment at the other side."""
    value = "1" if direction == "rtl" else "0"
    properties = paragraph.first("pPr")
    if properties is None:
        begin = paragraph.inner[0]
        prefix = data[paragraph.begin : begin].decode()[1:].split(None, 1)[0].rstrip(">").removesuffix("p")
        return Piece(begin, begin, f'<{prefix}pPr rtl="{value}"/>')
    end = properties.inner[0] or properties.end
    tag = with_attribute(data[properties.begin : end].decode(), "rtl", value)
    if (side := {"l": "r", "r": "l"}.get(properties.attributes.get("algn", ""))) is not None:
        tag = with_attribute(tag, "algn", side)
    return Piece(properties.begin, end, tag)
