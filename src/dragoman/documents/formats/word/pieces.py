"""What a paragraph consists of: text and other things in runs, and what holds several of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from dragoman.base.packages import optional
from dragoman.documents.formats.word.xml import Element, attribute, child, kind

_CONTAINERS = frozenset(("hyperlink", "ins", "moveTo", "smartTag", "customXml", "dir", "bdo", "sdt"))
_CHOSEN = frozenset(("dropDownList", "comboBox", "date", "picture", "dataBinding", "equation", "checkbox"))
_OF_SPELLING = frozenset(("lang", "noProof"))
_DEEPEST = 10
"""Containers within one another, and fields; what lies deeper is a thing like any other."""


@dataclass(frozen=True, eq=False)
class Leaf:
    """element: text or another thing; run: that it stands in, None for what stands beside runs."""

    element: Element
    run: Element | None

    @cached_property
    def text(self) -> str | None:
        """None of what is no text."""
        if kind(self.element) != "t":
            return None
        text = (self.element.text or "") + "".join(each.tail or "" for each in self.element)
        kept = self.element.get("{http://www.w3.org/XML/1998/namespace}space") == "preserve"
        return text if kept else text.strip(" \t\r\n")


@dataclass(frozen=True, eq=False)
class Holder:
    """What stands around pieces: an element of which `place` holds them, or a field's first and last things."""

    pieces: Sequence["Piece"]
    element: Element | None = None
    place: Element | None = None
    first: Sequence[Leaf] = ()
    last: Sequence[Leaf] = ()


@dataclass(frozen=True, eq=False)
class Whole:
    """A field whose result is not translated, such as a number of a page. pieces: all of it."""

    pieces: Sequence["Piece"]


Piece = Leaf | Holder | Whole


def pieces_of(place: Element, depth: int = 0) -> list[Piece]:
    """Of a paragraph, or of what holds runs in it. Paragraphs in text boxes are not this one's."""
    found: list[Piece] = []
    for each in place:
        name = kind(each)
        if name == "r":
            found += [Leaf(inner, each) for inner in each if kind(inner) != "rPr"]
        elif name in _CONTAINERS and depth < _DEEPEST and not _chosen(each):
            inner = child(each, "sdtContent") if name == "sdt" else each
            found.append(
                Leaf(each, None) if inner is None else Holder(pieces_of(inner, depth + 1), element=each, place=inner)
            )
        elif not is_property(each):
            found.append(Leaf(each, None))
    return _with_fields(found)


def is_property(element: Element) -> bool:
    """Whether an element says something of the one that holds it, and stays where it is."""
    return kind(element).endswith("Pr")


def texts_of(pieces: Iterable[Piece]) -> Iterator[Leaf]:
    """All leaves that are text."""
    for piece in pieces:
        if isinstance(piece, Leaf):
            if piece.text is not None:
                yield piece
        else:
            yield from texts_of(piece.pieces)


def format_of_run(run: Element | None) -> str:
    """What two runs have to have in common to look the same. What spelling they have is not seen."""
    properties = None if run is None else child(run, "rPr")
    if properties is None:
        return ""
    etree = optional("lxml.etree", "documents", "lxml")
    seen = [each for each in properties if kind(each) not in _OF_SPELLING]
    shown = [etree.tostring(each, method="c14n", exclusive=True, with_tail=False) for each in seen]
    return b"".join(shown).decode()


def _chosen(element: Element) -> bool:
    """Whether a content control's text is one of a list, or is stored elsewhere."""
    properties = child(element, "sdtPr")
    if properties is None:
        return False
    return any(isinstance(each.tag, str) and each.tag.rpartition("}")[2] in _CHOSEN for each in properties)


def _with_fields(pieces: Sequence[Piece]) -> list[Piece]:
    """Each field that begins and ends among these pieces as one of them."""
    found: list[Piece] = []
    begun: list[int] = []
    for piece in pieces:
        role = _role(piece)
        found.append(piece)
        if role == "begin":
            begun.append(len(found) - 1)
        elif role == "end" and begun:
            begin = begun.pop()
            if len(begun) < _DEEPEST:
                found[begin:] = [_field(found[begin:])]
    return found


def _role(piece: Piece) -> str | None:
    if isinstance(piece, Leaf) and kind(piece.element) == "fldChar":
        return attribute(piece.element, "fldCharType")
    return None


def _field(pieces: Sequence[Piece]) -> Piece:
    """A link's text is translated, any other field's result is not."""
    middle = next((place for place, piece in enumerate(pieces) if _role(piece) == "separate"), None)
    if middle is None:
        return Whole(pieces)
    first = [piece for piece in pieces[: middle + 1] if isinstance(piece, Leaf)]
    codes = "".join("".join(leaf.element.itertext()) for leaf in first if kind(leaf.element) == "instrText")
    if codes.split()[:1] != ["HYPERLINK"] or len(first) <= middle:
        return Whole(pieces)
    last = pieces[-1]
    assert isinstance(last, Leaf)
    return Holder(pieces[middle + 1 : -1], first=first, last=[last])
