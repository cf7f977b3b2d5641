"""Parses the XML of Word documents, with limits that protect against hostile files."""

from typing import Any
from xml.parsers import expat

from dragoman.base.errors import DataError
from dragoman.base.packages import import_optional

Element = Any
"""An element of lxml, which preserves prefixes and unknown content."""

_NAMESPACES = (
    "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}",
    "{http://purl.oclc.org/ooxml/wordprocessingml/main}",  # "Strict Open XML"
)


class _RootReached(Exception):
    """Raised at the root element, if no document type precedes it."""


def parse_xml(data: bytes, name: str) -> Element:
    """Parse a part and return its root element. Raises DataError for malformed XML and for a document type declaration.

    Office forbids document types; without one there are no entities and no external references (ECMA-376 part 2,
    section 9.1.4).
    """
    etree = import_optional("lxml.etree", "documents", "lxml")
    _reject_doctype(data, name)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise DataError(f"the part {name} of this document is not valid XML: {error}") from None


def serialise_xml(root: Element) -> bytes:
    """Serialise a part, given its root element."""
    etree = import_optional("lxml.etree", "documents", "lxml")
    tree = root.getroottree()
    serialised: bytes = etree.tostring(tree, xml_declaration=True, encoding="UTF-8", standalone=tree.docinfo.standalone)
    return serialised


def local_name(element: Element) -> str:
    """Return the local name of a WordprocessingML element; empty for any other element."""
    if not isinstance(element.tag, str):  # a comment or a processing instruction
        return ""
    for namespace in _NAMESPACES:
        if element.tag.startswith(namespace):
            return str(element.tag[len(namespace) :])
    return ""


def attribute(element: Element, name: str) -> str | None:
    """Return an attribute in the element's own namespace."""
    value = element.get(element.tag[: element.tag.index("}") + 1] + name)
    return None if value is None else str(value)


def set_attribute(element: Element, name: str, value: str) -> None:
    """Set an attribute in the element's own namespace."""
    element.set(element.tag[: element.tag.index("}") + 1] + name, value)


def child(element: Element, name: str) -> Element | None:
    """Return the first child with a local name."""
    return next((candidate for candidate in element if local_name(candidate) == name), None)


def _reject_doctype(data: bytes, name: str) -> None:
    """Raise DataError for a document type declaration, before it is interpreted."""
    parser = expat.ParserCreate()

    def on_doctype(*_: object) -> None:
        raise DataError(f"the part {name} of this document contains a document type declaration, which is not allowed")

    def on_element(*_: object) -> None:
        raise _RootReached

    parser.StartDoctypeDeclHandler = on_doctype
    parser.StartElementHandler = on_element
    try:
        parser.Parse(data, True)
    except _RootReached:
        return
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise DataError(f"the part {name} of this document is not valid XML: {error}") from None
