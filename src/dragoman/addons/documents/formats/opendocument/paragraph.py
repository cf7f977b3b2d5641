"""`PartSplitter`: the XML of an OpenDocument file as kept parts and a passage for each paragraph.

OpenDocument 1.3 part 3, https://docs.oasis-open.org/office/OpenDocument/v1.3/os/part3-schema/
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from dragoman.addons.documents.formats.xml_tree import Element, Node, Text, escape_xml
from dragoman.addons.documents.passage import Passage, Style
from dragoman.addons.documents.passage_builder import PassageBuilder

TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
OFFICE = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
STYLE = "urn:oasis:names:tc:opendocument:xmlns:style:1.0"
TABLE = "urn:oasis:names:tc:opendocument:xmlns:table:1.0"
PRESENTATION = "urn:oasis:names:tc:opendocument:xmlns:presentation:1.0"
SVG = "urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"

_PARAGRAPHS = {
    *((TEXT, name) for name in ("p", "h", "index-title-template")),
    *((SVG, name) for name in ("title", "desc")),
    *((PRESENTATION, name) for name in ("header-decl", "footer-decl")),
}
_EXCLUDED = {
    *((OFFICE, name) for name in ("annotation", "forms", "event-listeners")),
    *((TEXT, "tracked-changes"), (TABLE, "tracked-changes")),
}
_SPANS = {(TEXT, name) for name in ("span", "a", "meta", "ruby", "ruby-base")}
_BLANKS = re.compile(r"[ \t\r\n]+")
_RANGE_KEYS = ("name", "id", "change-id")


class PartSplitter:
    """Splits a part of a document.

    invisible: names of styles that readers do not see; raised: those of raised or lowered text.
    """

    def __init__(self, data: bytes, invisible: frozenset[str], raised: frozenset[str]) -> None:
        self._data, self._invisible, self._raised = data, invisible, raised

    def split(self, element: Element) -> Iterator[tuple[int, int, Passage]]:
        """Yield each paragraph of an element in order, except those within others, as (begin, end, passage)."""
        for child in element.elements():
            key = (child.space, child.name)
            if key in _EXCLUDED or (child.name == "table-cell" and _is_computed(child)):
                continue
            if key in _PARAGRAPHS:
                passage = self._passage(child)
                if passage is not None:
                    yield *child.inner, passage
            else:
                yield from self.split(child)

    def _passage(self, paragraph: Element) -> Passage | None:
        builder = PassageBuilder(escape_xml)
        self._add(builder, paragraph.children)
        found: list[str | Passage] = []
        builder.finish(found.append)
        return next((each for each in found if isinstance(each, Passage)), None)

    def _add(self, builder: PassageBuilder, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if isinstance(node, Text):
                add_text(builder, node.text, self._raw(node.begin, node.end))
            elif isinstance(node, Element):
                self._add_element(builder, node)
            else:
                builder.add_mark("empty", (self._raw(node.begin, node.end),))

    def _add_element(self, builder: PassageBuilder, element: Element) -> None:
        raw = self._raw(element.begin, element.end)
        if (element.space, element.name) in _SPANS and element.inner[0]:
            self._add_span(builder, element)
        elif element.space != TEXT or element.name in ("note", "ruby-text"):
            builder.add_mark("empty", self._with_paragraphs(element))
        elif element.name == "s":
            if element.attributes.get(f"{{{TEXT}}}c", "1") == "1":
                builder.add_blank(raw)
            else:
                builder.add_text("\t", raw)  # several blanks are layout, and divide sentences as tabs do
        elif element.name == "tab":
            builder.add_text("\t", raw)
        elif element.name == "line-break":
            builder.add_line_break(raw)
        elif shown := "".join(element.texts()):
            builder.add_code(shown, raw)  # a field
        else:
            kind, name = _range_of(element)
            builder.add_mark(kind, (raw,), name)

    def _add_span(self, builder: PassageBuilder, element: Element) -> None:
        text_style = element.attributes.get(f"{{{TEXT}}}style-name")
        if element.name == "span" and text_style in self._invisible:
            self._add(builder, element.children)
            return
        name = f"{element.name} {element.begin}"
        style: Style = "separate" if element.name == "a" else "raised" if text_style in self._raised else "emphasis"
        builder.add_mark("open", (self._raw(element.begin, element.inner[0]),), name, style=style)
        self._add(builder, element.children)
        builder.add_mark("close", (self._raw(element.inner[1], element.end),), name)

    def _with_paragraphs(self, element: Element) -> tuple[str | Passage, ...]:
        """Return an element as kept parts and the paragraphs in it, such as those of a footnote or a text box."""
        if (element.space, element.name) in _EXCLUDED:
            return (self._raw(element.begin, element.end),)
        parts: list[str | Passage] = []
        at = element.begin
        for begin, end, passage in self.split(element):
            parts += [self._raw(at, begin), passage]
            at = end
        return (*parts, self._raw(at, element.end))

    def _raw(self, begin: int, end: int) -> str:
        return self._data[begin:end].decode()


def _is_computed(cell: Element) -> bool:
    """Return whether the text of a cell follows from its formula, or from its number or date."""
    attributes = cell.attributes
    if f"{{{TABLE}}}formula" in attributes or f"{{{OFFICE}}}string-value" in attributes:
        return True
    return attributes.get(f"{{{OFFICE}}}value-type", "string") != "string"


def add_text(builder: PassageBuilder, text: str, raw: str) -> None:
    """Add text of XML. raw: its form in the file."""
    if text != raw:  # an entity or a line break
        if text.isspace() and text != "\xa0":
            builder.add_blank(raw)
        else:
            builder.add_text(text, raw)
        return
    at = 0
    for blank in _BLANKS.finditer(text):
        for character in text[at : blank.start()]:
            builder.add_text(character, character)
        builder.add_blank(blank[0])
        at = blank.end()
    for character in text[at:]:
        builder.add_text(character, character)


def _range_of(element: Element) -> tuple[Literal["open", "close", "empty"], str]:
    """Return whether an element begins or ends a range, such as a bookmark, and a name that both ends have."""
    base, _, end = element.name.rpartition("-")
    key = next((value for key in _RANGE_KEYS if (value := element.attributes.get(f"{{{TEXT}}}{key}"))), "")
    if end == "start":
        return "open", f"{base} {key}"
    return ("close", f"{base} {key}") if end == "end" else ("empty", "")
