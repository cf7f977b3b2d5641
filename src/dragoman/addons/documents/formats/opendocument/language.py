"""Languages of an OpenDocument file: the attributes that name them or their direction, and styles that only differ in
them."""

import re
from collections.abc import Iterator

from dragoman.addons.documents.formats.opendocument.paragraph import STYLE
from dragoman.addons.documents.formats.xml_tree import Element, with_attribute
from dragoman.addons.documents.languages import Direction, Languages, script_group, with_region
from dragoman.text.languages.codes import is_same_language

_FO = "urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0"
_MODES = {"ltr": "lr-tb", "rtl": "rl-tb"}
_INVISIBLE = re.compile(r"\{[^}]*\}(?:.*rsid|(?:language|country|script|rfc-language-tag)(?:-asian|-complex)?)")


def invisible_styles(root: Element) -> frozenset[str]:
    """Return the names of automatic text styles that only record languages and editing sessions."""
    return frozenset(
        style.attributes[f"{{{STYLE}}}name"]
        for styles in root.elements()
        if styles.name == "automatic-styles"
        for style in styles.elements()
        if f"{{{STYLE}}}name" in style.attributes and _is_invisible(style)
    )


def _is_invisible(style: Element) -> bool:
    attributes = style.attributes
    if attributes.get(f"{{{STYLE}}}family") != "text" or attributes.get(f"{{{STYLE}}}parent-style-name"):
        return False
    return all(
        properties.name == "text-properties" and all(map(_INVISIBLE.fullmatch, properties.attributes))
        for properties in style.elements()
    )


def raised_styles(root: Element) -> frozenset[str]:
    """Return the names of text styles that raise or lower their text, such as exponents."""
    return frozenset(
        style.attributes.get(f"{{{STYLE}}}name", "")
        for styles in root.elements()
        for style in styles.elements()
        if style.name == "style"
        for properties in style.elements()
        if properties.attributes.get(f"{{{STYLE}}}text-position", "0").split()[:1] not in (["0"], ["0%"])
    )


def language_changes(root: Element, data: bytes, languages: Languages) -> Iterator[tuple[int, int, str]]:
    """Yield the start tags that name the source language as (begin, end, replacement) with the target language.

    If the source language is unknown, these are the tags of the default styles.
    """
    if languages.target is None:
        return
    for styles in root.elements():
        if styles.name not in ("styles", "automatic-styles"):
            continue
        for style in styles.elements():
            if languages.source is None and style.name != "default-style":
                continue
            for element in _text_properties(style):
                present = element.attributes.get(f"{{{_FO}}}language")
                if _is_source(present, languages):
                    end = element.inner[0] or element.end
                    tag = data[element.begin : end].decode()
                    yield element.begin, end, _with_language(tag, languages.target)


def direction_changes(root: Element, data: bytes, languages: Languages) -> Iterator[tuple[int, int, str]]:
    """Yield the start tags that change, like `language_changes`, if the translation runs in the other direction.

    These are the layouts of pages, the default style of paragraphs, and all properties that state a direction.
    """
    direction = languages.new_direction
    for styles in root.elements():
        if direction is None or styles.name not in ("styles", "automatic-styles", "master-styles"):
            continue
        for style in styles.elements():
            for element in style.elements():
                if element.space == STYLE and element.name.endswith("-properties"):
                    present = element.attributes.get(f"{{{STYLE}}}writing-mode")
                    mode = _with_direction(present, direction)
                    if present is None and not _decides_direction(style, element):
                        continue
                    if present == "page" and style.name == "default-style":
                        mode = _MODES[direction]
                    if mode != present:
                        end = element.inner[0] or element.end
                        tag = data[element.begin : end].decode()
                        prefix = tag[1:].partition(element.name)[0]
                        yield element.begin, end, with_attribute(tag, f"{prefix}writing-mode", mode)


def _decides_direction(style: Element, properties: Element) -> bool:
    """Return whether a style without a direction is the one that others inherit theirs from."""
    return properties.name == "page-layout-properties" or (
        style.name == "default-style" and properties.name == "paragraph-properties"
    )


def _with_direction(mode: str | None, direction: Direction) -> str:
    """Return a writing mode in another direction. Vertical ones are kept."""
    if mode is None:
        return _MODES[direction]
    return re.sub(r"\A(lr|rl)(?=-tb|\Z)", _MODES[direction][:2], mode)


def _is_source(code: str | None, languages: Languages) -> bool:
    if code in (None, "", "none", "zxx"):
        return False
    return languages.source is None or is_same_language(str(code), languages.source)


def _text_properties(element: Element) -> Iterator[Element]:
    for child in element.elements():
        if child.space == STYLE and child.name == "text-properties":
            yield child
        yield from _text_properties(child)


def _with_language(tag: str, target: str) -> str:
    language, region = with_region(target)
    found = re.search(r"\s([^\s=]+:)language\s*=", tag)
    prefix, suffix = ("fo:" if found is None else found[1]), ""
    if script_group(target) != "western":
        prefix, suffix = tag[1:].partition("text-properties")[0], f"-{script_group(target)}"
    tag = with_attribute(tag, f"{prefix}language{suffix}", language)
    return with_attribute(tag, f"{prefix}country{suffix}", region or "none")
