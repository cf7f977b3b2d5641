"""`Paragraph`: a paragraph of a Word document as a passage, and its translation written back as runs."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property

from dragoman.base.packages import import_optional
from dragoman.documents.formats.word.package import Element, attribute, child, kind
from dragoman.documents.passage import Passage, PassageBuilder

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
    etree = import_optional("lxml.etree", "documents", "lxml")
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


# No XML can hold these two, so no text does: between them stands the number of what is not text
_BEGIN, _END = "\x01", "\x02"
_MARK = re.compile(f"{_BEGIN}([0-9]+){_END}")
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_UNIT = re.compile(r"( {3,})|([ \t\r\n]+)|.", re.DOTALL)
_WITHIN_TEXT = frozenset(("tab", "ptab", "br", "cr", "noBreakHyphen", "softHyphen"))
_PRESERVE = "{http://www.w3.org/XML/1998/namespace}space"


def written_text(text: str, _: bool = False) -> str:
    """What XML can hold of a translation."""
    return _FORBIDDEN.sub("\ufffd", re.sub(r"[\t\r\n]", " ", text))


@dataclass(frozen=True)
class _Span:
    """What begins: a holder, or text of another format than that around it. run: whose format its text has."""

    holder: Holder | None
    run: Element | None


class Paragraph:
    """element: w:p. passage: its text; formats, links and all that is no text are marks with numbers."""

    def __init__(self, element: Element) -> None:
        self._element = element
        self._marks: list[Piece | _Span | None] = []
        pieces = pieces_of(element)
        self._base = _usual(pieces)
        builder = PassageBuilder(written_text)
        self._add(builder, pieces, self._base)
        found: list[str | Passage] = []
        builder.finish(found.append)
        self.passage = next((each for each in found if isinstance(each, Passage)), None)

    def write(self, text: str) -> None:
        """The paragraph becomes that: a passage's text as it was rewritten, with the marks of this one's."""
        stack: list[tuple[Element, Element | None, Holder | None]] = [(_emptied(self._element), self._base, None)]
        writer = _Writer()
        for place, part in enumerate(_MARK.split(text)):
            where, run, holder = stack[-1]
            mark = self._marks[int(part)] if place % 2 else None
            if place % 2 == 0:
                writer.text(where, run, part)
            elif isinstance(mark, _Span):
                if mark.holder is not None:
                    where = writer.begin(where, mark.holder)
                stack.append((where, run if mark.run is None else mark.run, mark.holder))
            elif mark is not None:
                writer.piece(where, mark)
            elif len(stack) > 1:
                stack.pop()
                for leaf in () if holder is None else holder.last:
                    writer.piece(where, leaf)

    def _add(self, builder: PassageBuilder, pieces: Sequence[Piece], base: Element | None) -> None:
        """base: the run whose format needs no marks."""
        usual, place = format_of_run(base), 0
        while place < len(pieces):
            piece = pieces[place]
            if isinstance(piece, Holder):
                own = _usual(piece.pieces)
                name = self._open(builder, _Span(piece, own))
                self._add(builder, piece.pieces, own if own is not None else base)
                self._close(builder, name)
            elif isinstance(piece, Leaf) and _inked(piece) and format_of_run(piece.run) != usual:
                end = _end_of_format(pieces, place)
                name = self._open(builder, _Span(None, piece.run))
                for leaf in pieces[place:end]:
                    self._add_leaf(builder, leaf)
                self._close(builder, name)
                place = end
                continue
            else:
                self._add_leaf(builder, piece)
            place += 1

    def _open(self, builder: PassageBuilder, span: _Span) -> str:
        raw = self._number(span)
        builder.mark("open", (raw,), raw)
        return raw

    def _close(self, builder: PassageBuilder, name: str) -> None:
        builder.mark("close", (self._number(None),), name)

    def _number(self, mark: Piece | _Span | None) -> str:
        """None: what began last ends."""
        self._marks.append(mark)
        return f"{_BEGIN}{len(self._marks) - 1}{_END}"

    def _add_leaf(self, builder: PassageBuilder, piece: Piece) -> None:
        if isinstance(piece, Leaf) and piece.text is not None:
            _add_text(builder, piece.text)
            return
        raw = self._number(piece)
        if not isinstance(piece, Leaf):
            builder.keep("".join(leaf.text or "" for leaf in texts_of(piece.pieces)), raw)
            return
        match kind(piece.element):
            case "tab" | "ptab":
                builder.text("\t", raw)
            case "br" | "cr":
                builder.line_break(raw)
            case "noBreakHyphen":
                builder.text("-", raw)
            case "fldSimple":
                builder.keep("".join(leaf.text or "" for leaf in texts_of(pieces_of(piece.element))), raw)
            case _:
                builder.mark("empty", (raw,))


class _Writer:
    """Puts text and things into runs; text side by side that looks the same is in one run."""

    def __init__(self) -> None:
        self._last: Element | None = None
        self._of: Element | str = ""

    def text(self, where: Element, like: Element | None, text: str) -> None:
        """like: a run whose format it gets."""
        if not text:
            return
        run = self._run(where, like, format_of_run(like))
        last = run[-1] if len(run) else None
        if last is None or kind(last) != "t":
            last = _sub(run, "t", where)
        last.text = (last.text or "") + text
        if last.text != " ".join(last.text.split()):
            last.set(_PRESERVE, "preserve")

    def begin(self, where: Element, holder: Holder) -> Element:
        """Gives where that stands which it holds."""
        for leaf in holder.first:
            self.piece(where, leaf)
        if holder.element is None:
            return where
        where.append(holder.element)
        return _emptied(holder.place)

    def piece(self, where: Element, piece: Piece) -> None:
        """As it is."""
        if isinstance(piece, Leaf):
            if piece.run is None:
                where.append(piece.element)
            else:
                within_text = kind(piece.element) in _WITHIN_TEXT
                self._run(where, piece.run, format_of_run(piece.run) if within_text else piece.run).append(
                    piece.element
                )
        elif isinstance(piece, Whole):
            for each in piece.pieces:
                self.piece(where, each)
        elif piece.element is not None:
            where.append(piece.element)
        else:
            for each in (*piece.first, *piece.pieces, *piece.last):
                self.piece(where, each)

    def _run(self, where: Element, like: Element | None, of: Element | str) -> Element:
        """The last that was written, if that is of the same, or a new one. of: a format, or the run that things had."""
        same = of is self._of or (isinstance(of, str) and of == self._of)
        if self._last is None or len(where) == 0 or where[-1] is not self._last or not same:
            self._last, self._of = _sub(where, "r", where), of
            if like is not None:
                self._last.attrib.update(like.attrib)
                self._last.extend(deepcopy(each) for each in like if kind(each) == "rPr")
        return self._last


def _sub(holder: Element, name: str, beside: Element) -> Element:
    """A new element in a holder; beside: whose name space it has."""
    etree = import_optional("lxml.etree", "documents", "lxml")
    return etree.SubElement(holder, beside.tag[: beside.tag.index("}") + 1] + name)


def _emptied(place: Element) -> Element:
    """Without what it holds but its properties."""
    for each in list(place):
        if not is_property(each):
            place.remove(each)
    return place


def _add_text(builder: PassageBuilder, text: str) -> None:
    for unit in _UNIT.finditer(text):
        aligned, blank = unit.groups()
        if blank is not None:
            builder.blank(blank)
            continue
        for character in aligned or unit[0]:
            builder.text(character, character)


def _inked(leaf: Leaf) -> bool:
    return bool((leaf.text or "").strip())


def _usual(pieces: Sequence[Piece]) -> Element | None:
    """The run whose format most of the text has that stands directly here; the first of these."""
    counts = Counter[str]()
    runs: dict[str, Element] = {}
    for piece in pieces:
        if isinstance(piece, Leaf) and _inked(piece):
            format = format_of_run(piece.run)
            counts[format] += len(piece.text or "")
            runs.setdefault(format, piece.run)
    return runs[counts.most_common(1)[0][0]] if counts else None


def _end_of_format(pieces: Sequence[Piece], begin: int) -> int:
    """Where text of the format that begins there ends; blanks and things between do not end it."""
    format, end = None, begin
    for place in range(begin, len(pieces)):
        piece = pieces[place]
        if isinstance(piece, Holder):
            break
        if isinstance(piece, Leaf) and _inked(piece):
            if format not in (None, format_of_run(piece.run)):
                break
            format, end = format_of_run(piece.run), place + 1
    return end
