"""`parse_timed_text`: parses the Timed Text Markup Language (.ttml, .dfxp)."""

import re
from collections.abc import Iterator

from dragoman.addons.documents.formats.format import ParsedDocument
from dragoman.addons.documents.formats.html.text import unescape
from dragoman.addons.documents.formats.subtitles.cue import Cue
from dragoman.addons.documents.formats.subtitles.document import parse_subtitles
from dragoman.addons.documents.formats.subtitles.lines import seconds
from dragoman.addons.documents.formats.subtitles.markup import CueMarkup, Tag
from dragoman.addons.documents.formats.xml_tree import Element, Other, escape_xml, parse_tree, with_attribute
from dragoman.addons.documents.languages import UNKNOWN, Languages, opposite
from dragoman.base.log import warn
from dragoman.text.languages.codes import is_same_language

_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_DIRECTION = "{http://www.w3.org/ns/ttml#styling}direction"
_DIRECTION_NAME = re.compile(r"\s([\w.-]+:direction)\s*=")
_TIME = re.compile(r"\d+:\d+:\d+(?:\.\d+)?\Z|\d+(?:\.\d+)?s\Z")
_TAG = r"""<(?:[^<>"']|"[^"]*"|'[^']*')*>"""
_NAME = re.compile(r"<(/?)(?:[\w.-]+:)?([\w.-]+)")
_TIMED = re.compile(r"\s(?:begin|end|dur)\s*=")
_TRANSLATED = frozenset(("span", "br", "set"))
"""The elements that a translatable paragraph may contain."""


def _classify(raw: str) -> Tag:
    found = _NAME.match(raw)
    if found is None or raw.endswith("/>"):
        return Tag("empty")
    name = found[2]
    return Tag("close", name) if found[1] else Tag("open", name, starts_section=_TIMED.search(raw) is not None)


_MARKUP = CueMarkup(
    re.compile(rf"<!--.*?-->|<\?.*?\?>|(?!<(?:[\w.-]+:)?br\b){_TAG}"),
    escape_xml,
    _classify,
    encoded=re.compile(r"&#?\w+;"),
    decode=unescape,
    line_break=re.compile(r"<(?:[\w.-]+:)?br\b[^<>]*/>|<(?:[\w.-]+:)?br\b[^<>]*>\s*</(?:[\w.-]+:)?br\s*>"),
)


def parse_timed_text(text: str, languages: Languages = UNKNOWN) -> ParsedDocument[str]:
    """Parse a file. The paragraphs (`<p>`) are translated, and their timed words (`<span begin=…>`) keep their order.

    If `xml:lang` is the source language, it becomes the target language. Paragraphs with CDATA sections, metadata and
    other unusual elements are kept, with a warning. Raises DataError for malformed XML and for a document type.
    """
    data = text.encode()
    root = parse_tree(data, "the document")
    pieces: list[str | Cue] = []
    position = unusual = paragraphs = 0
    for element in _elements(root):
        tag_end = element.inner[0]
        new_tag = _translated_tag(data[element.begin : tag_end].decode(), element, languages)
        pieces += [data[position : element.begin].decode(), new_tag]
        position = tag_end
        if element.name != "p":
            continue
        paragraphs += 1
        begin, end = element.inner
        if not _is_usual(element, data):
            unusual += 1
        elif begin < end:
            pieces.append(_cue(data[begin:end].decode(), element))
            position = end
    pieces.append(data[position:].decode())
    if not paragraphs:
        warn("no element is named p, so this file has no subtitles and remains unchanged")
    if unusual:
        warn(f"{unusual:,} paragraph(s) with CDATA sections or unusual elements remain unchanged")
    return parse_subtitles(pieces, _MARKUP, languages.source)


def _elements(element: Element) -> Iterator[Element]:
    """Yield an element and the elements in it, in order, without those in paragraphs."""
    yield element
    if element.name != "p":
        for child in element.elements():
            yield from _elements(child)


def _translated_tag(tag: str, element: Element, languages: Languages) -> str:
    """Return the start tag of an element with the target language, and its direction, for those of the source."""
    direction = element.attributes.get(_DIRECTION, "").strip()
    if languages.new_direction is not None and direction == opposite(languages.new_direction):
        found = _DIRECTION_NAME.search(tag)
        tag = tag if found is None else with_attribute(tag, found[1], languages.new_direction)
    language = element.attributes.get(_LANGUAGE)
    if not language or languages.source is None or languages.target is None:
        return tag
    return with_attribute(tag, "xml:lang", languages.target) if is_same_language(language, languages.source) else tag


def _is_usual(element: Element, data: bytes) -> bool:
    """Return whether an element contains only text, comments, spans and line breaks."""
    return all(
        _is_usual(child, data) and child.name in _TRANSLATED
        if isinstance(child, Element)
        else not (isinstance(child, Other) and data.startswith(b"<![CDATA[", child.begin))
        for child in element.children
    )


def _cue(text: str, element: Element) -> Cue:
    times = [element.attributes.get(name, "").strip() for name in ("begin", "end")]
    appearance = "\0".join(element.attributes.get(name, "") for name in ("region", "style"))
    if any(_TIME.match(time) is None for time in times):
        return Cue(text, appearance=appearance)
    begin, end = (seconds(time.removesuffix("s")) for time in times)
    return Cue(text, begin, end, appearance)
