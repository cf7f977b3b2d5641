"""The direction of text in Word documents: `w:bidi`, `w:rtl` and `w:bidiVisual` (ECMA-376 part 1, section 17.3.1.6)."""

from copy import deepcopy

from dragoman.addons.documents.formats.word.package import Element, child, local_name, set_attribute
from dragoman.addons.documents.languages import Direction
from dragoman.base.packages import import_optional

_FOLLOWING = {
    "bidi": "adjustRightInd snapToGrid spacing ind contextualSpacing mirrorIndents suppressOverlap jc textDirection "
    "textAlignment textboxTightWrap outlineLvl divId cnfStyle rPr sectPr pPrChange rtlGutter docGrid printerSettings "
    "sectPrChange",
    "rtl": "cs em lang eastAsianLayout specVanish oMath rPrChange",
    "bidiVisual": "tblStyleRowBandSize tblStyleColBandSize tblW jc tblCellSpacing tblInd tblBorders shd tblLayout "
    "tblCellMar tblLook tblCaption tblDescription tblPrChange",
}
"""The properties that follow each property in the order that the schema requires."""

_COMPLEX = {"b": "bCs", "i": "iCs", "sz": "szCs"}
"""Formats of text, and the same formats of text that runs from right to left, for which the former are ignored."""


def set_paragraph_direction(paragraph: Element, direction: Direction | None) -> None:
    """Set the direction of a translated paragraph and of its runs. None keeps it."""
    if direction is None:
        return
    _set(_properties(paragraph, "pPr"), "bidi", direction)
    for run in paragraph.iter(paragraph.tag[:-1] + "r"):
        properties = _properties(run, "rPr")
        _set(properties, "rtl", direction)
        for one, other in _COMPLEX.items():
            source, target = (one, other) if direction == "rtl" else (other, one)
            format = child(properties, source)
            if format is not None and child(properties, target) is None:
                copy = deepcopy(format)
                copy.tag = copy.tag[: copy.tag.index("}") + 1] + target
                (format.addnext if direction == "rtl" else format.addprevious)(copy)


def set_page_direction(root: Element, direction: Direction) -> None:
    """Set the direction of the columns of all tables, and that of the sections of a document."""
    for each in root.iter():
        if local_name(each) == "tbl":
            _set(_properties(each, "tblPr"), "bidiVisual", direction)
        elif local_name(each) == "sectPr":
            _set(each, "bidi", direction)


def _properties(element: Element, name: str) -> Element:
    """Return the properties of an element, which are created if they are missing."""
    found = child(element, name)
    if found is None:
        found = _new(element, name)
        element.insert(0, found)
    return found


def _set(properties: Element, name: str, direction: Direction) -> None:
    """Set a property to true for text from right to left, else to false, because a style may set it to true."""
    found = child(properties, name)
    if found is None:
        found = _new(properties, name)
        following = _FOLLOWING[name].split()
        at = next((index for index, each in enumerate(properties) if local_name(each) in following), len(properties))
        properties.insert(at, found)
    elif direction == "rtl":
        found.attrib.clear()
    if direction == "ltr":
        set_attribute(found, "val", "0")


def _new(parent: Element, name: str) -> Element:
    etree = import_optional("lxml.etree", "documents", "lxml")
    return etree.Element(parent.tag[: parent.tag.index("}") + 1] + name, nsmap=parent.nsmap)
