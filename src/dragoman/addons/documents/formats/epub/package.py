"""The package document of an e-book (.opf) and its table of contents (.ncx): titles, and what names the language.

EPUB 3.3, https://www.w3.org/TR/epub-33/#sec-package-doc
"""

from collections.abc import Iterator

from dragoman.addons.documents.formats.archive_document import Piece
from dragoman.addons.documents.formats.opendocument.paragraph import add_text
from dragoman.addons.documents.formats.xml_tree import Element, Text, attribute_span, escape_xml, with_attribute
from dragoman.addons.documents.languages import Languages
from dragoman.addons.documents.passage import Passage
from dragoman.addons.documents.passage_builder import PassageBuilder
from dragoman.text.languages.codes import is_same_language

_DUBLIN_CORE = "http://purl.org/dc/elements/1.1/"
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_TEXTS = ("title", "description", "subject")


def package_pieces(element: Element, data: bytes, languages: Languages) -> Iterator[Piece]:
    """Yield the titles and descriptions of a book, its languages, and the direction in which its pages are turned."""
    yield from _language_pieces(element, data, languages)
    for child in element.elements():
        if child.space == _DUBLIN_CORE and child.name in _TEXTS:
            yield from _language_pieces(child, data, languages)
            yield from _text_pieces(child, data)
        elif child.space == _DUBLIN_CORE and child.name == "language":
            yield from _declared_language(child, languages)
        elif child.name == "spine" and languages.new_direction is not None:
            tag = data[child.begin : child.inner[0]].decode()
            new = with_attribute(tag, "page-progression-direction", languages.new_direction)
            yield Piece(child.begin, child.inner[0], new)
        else:
            yield from package_pieces(child, data, languages)


def contents_pieces(element: Element, data: bytes, languages: Languages) -> Iterator[Piece]:
    """Yield the texts of a table of contents, and its language."""
    yield from _language_pieces(element, data, languages)
    for child in element.elements():
        if child.name == "text":
            yield from _text_pieces(child, data)
        else:
            yield from contents_pieces(child, data, languages)


def _declared_language(element: Element, languages: Languages) -> Iterator[Piece]:
    """Yield the language of the book, if it is the source language."""
    code = "".join(element.texts()).strip()
    if code and languages.target is not None and (languages.source is None or is_same_language(code, languages.source)):
        yield Piece(*element.inner, languages.target.replace("_", "-"))


def _language_pieces(element: Element, data: bytes, languages: Languages) -> Iterator[Piece]:
    code = element.attributes.get(_LANGUAGE)
    if code and languages.source and languages.target and is_same_language(code, languages.source):
        yield Piece(*attribute_span(data, element, "xml:lang"), languages.target.replace("_", "-"))


def _text_pieces(element: Element, data: bytes) -> Iterator[Piece]:
    """Yield the text of an element. Descriptions with tags, which are written as text, are kept."""
    text = "".join(element.texts())
    if "<" in text or not any(map(str.isalpha, text)):
        return
    builder, found = PassageBuilder(escape_xml), list[str | Passage]()
    for child in element.children:
        raw = data[child.begin : child.end].decode()
        if isinstance(child, Text):
            add_text(builder, child.text, raw)
        else:
            builder.add_mark("empty", (raw,))
    builder.finish(found.append)
    for passage in found:
        if isinstance(passage, Passage):
            yield Piece(*element.inner, passage)
