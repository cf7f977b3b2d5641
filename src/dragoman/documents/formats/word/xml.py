"""XML of documents, read so that it cannot reach or become anything else."""

from typing import Any
from xml.parsers import expat

from dragoman.base.errors import DataError
from dragoman.base.packages import optional

Element = Any
"""Of lxml, which keeps names, prefixes and what is not understood as they are."""

_SPACES = (
    "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}",
    "{http://purl.oclc.org/ooxml/wordprocessingml/main}",  # "Strict Open XML"
)


class _Begun(Exception):
    """The root element was reached, and no document type stood before it."""


def parsed(data: bytes, name: str) -> Element:
    """The root of a part. Raises DataError for what is no XML, and for a document type, which Office forbids.

    Without a document type there are no entities, nor anything that is elsewhere (ECMA-376 part 2, section 9.1.4).
    """
    etree = optional("lxml.etree", "documents", "lxml")
    _check(data, name)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise DataError(f"the part {name} of this document is no XML that can be read: {error}") from None


def serialised(root: Element) -> bytes:
    """The whole part."""
    etree = optional("lxml.etree", "documents", "lxml")
    tree = root.getroottree()
    written: bytes = etree.tostring(tree, xml_declaration=True, encoding="UTF-8", standalone=tree.docinfo.standalone)
    return written


def kind(element: Element) -> str:
    """The name of an element of WordprocessingML, without its name space; empty for all others."""
    if not isinstance(element.tag, str):  # a comment or a processing instruction
        return ""
    for space in _SPACES:
        if element.tag.startswith(space):
            return str(element.tag[len(space) :])
    return ""


def attribute(element: Element, name: str) -> str | None:
    """That of the element's own name space."""
    value = element.get(element.tag[: element.tag.index("}") + 1] + name)
    return None if value is None else str(value)


def child(element: Element, name: str) -> Element | None:
    """The first of that kind."""
    return next((each for each in element if kind(each) == name), None)


def _check(data: bytes, name: str) -> None:
    """Raises DataError for a document type, before any of it is read."""
    parser = expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise DataError(f"the part {name} of this document has a document type (DTD), which none of Word's has")

    def stop(*_: object) -> None:
        raise _Begun

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = stop
    try:
        parser.Parse(data, True)
    except _Begun:
        return
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise DataError(f"the part {name} of this document is no XML: {error}") from None
