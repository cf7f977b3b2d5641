"""Excel workbooks (.xlsx, ECMA-376): texts of cells, text boxes and charts are translated, and formulas are kept."""

import re
from collections.abc import Iterator

from dragoman.addons.documents.formats.archive import Archive, check_text_size
from dragoman.addons.documents.formats.archive_document import ArchiveFormat, Member, Piece, member_of_pieces
from dragoman.addons.documents.formats.office.parts import drawn_members, part_types
from dragoman.addons.documents.formats.office.runs import run_piece
from dragoman.addons.documents.formats.xml_tree import Element, parse_tree, with_attribute
from dragoman.addons.documents.languages import Direction, Languages

_KIND = "an Excel workbook (.xlsx)"
_OPEN = "application/vnd.openxmlformats-officedocument.spreadsheetml."
_MAIN = (
    *(f"{_OPEN}{name}.main+xml" for name in ("sheet", "template")),
    *(f"application/vnd.ms-excel.{name}.macroEnabled.main+xml" for name in ("sheet", "template")),
)
_STRINGS, _SHEET = f"{_OPEN}sharedStrings+xml", f"{_OPEN}worksheet+xml"
_NAMING = (f"{_OPEN}table+xml", f"{_OPEN}pivotCacheDefinition+xml")
_DRAWINGS = ("application/vnd.openxmlformats-officedocument.drawing+xml",)
_LINE_BREAK = re.compile(r"_x000[aAdD]_|\s+")


def workbook_format() -> ArchiveFormat:
    """Return the format. Names of sheets, headings of tables, comments, and headers and footers are kept."""
    return ArchiveFormat(_KIND, _members)


def _members(archive: Archive, languages: Languages) -> list[Member]:
    types = part_types(archive, _MAIN, _KIND)
    kept = frozenset(_names_of_columns(archive, [name for name, type in types.items() if type in _NAMING]))
    members = drawn_members(archive, types, _DRAWINGS, languages)
    size = 0
    for name, type in types.items():
        if type not in (_STRINGS, _SHEET):
            continue
        data = archive.read(name)
        if type == _SHEET and languages.new_direction is None and b"inlineStr" not in data:
            continue  # most sheets have only numbers, and refer to the shared strings
        size += len(data)
        check_text_size(size)
        root = parse_tree(data, f"the part {name} of this document")
        members.append(member_of_pieces(name, data, _pieces(root, data, languages, kept)))
    return members


def _pieces(element: Element, data: bytes, languages: Languages, kept: frozenset[str]) -> Iterator[Piece]:
    """Yield the texts of cells: `<si>` among the shared strings, `<is>` in a sheet."""
    for child in element.elements():
        if child.name in ("si", "is"):
            nodes = [each for each in child.elements() if each.name in ("r", "t")]
            text = "".join(text for node in nodes for text in node.texts())
            # a translation has no pronunciations (`rPh`), which follow the runs
            piece = run_piece(data, nodes, child.inner, languages.target) if _normal(text) not in kept else None
            if piece is not None:
                yield piece
        elif child.name == "sheetView" and languages.new_direction is not None:
            yield _direction_piece(child, data, languages.new_direction)
        else:
            yield from _pieces(child, data, languages, kept)


def _direction_piece(view: Element, data: bytes, direction: Direction) -> Piece:
    end = view.inner[0] or view.end
    value = "1" if direction == "rtl" else "0"
    return Piece(view.begin, end, with_attribute(data[view.begin : end].decode(), "rightToLeft", value))


def _names_of_columns(archive: Archive, names: list[str]) -> Iterator[str]:
    """Yield the names of the columns of tables and pivot tables: formulas and Excel look for them in the cells."""
    check_text_size(sum(archive.sizes[name] for name in names))
    for name in names:
        root = parse_tree(archive.read(name), f"the part {name} of this document")
        for columns in root.elements():
            for column in columns.elements():
                if column.name in ("tableColumn", "cacheField"):
                    yield _normal(column.attributes.get("name", ""))


def _normal(text: str) -> str:
    return _LINE_BREAK.sub(" ", text).strip()
