"""`Paragraph`: converts a paragraph of a Word document to a passage, and writes the translation back as runs."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property

from dragoman.addons.documents.formats.word.direction import set_paragraph_direction
from dragoman.addons.documents.formats.word.language import set_run_language
from dragoman.addons.documents.formats.word.package import Element, attribute, child, local_name
from dragoman.addons.documents.languages import UNKNOWN, Languages
from dragoman.addons.documents.passage import Passage, Style
from dragoman.addons.documents.passage_builder import PassageBuilder
from dragoman.base.packages import import_optional

_CONTAINERS = frozenset(("hyperlink", "ins", "moveTo", "smartTag", "customXml", "dir", "bdo", "sdt"))
_FIXED_CONTROLS = frozenset(("dropDownList", "comboBox", "date", "picture", "dataBinding", "equation", "checkbox"))
_PROOFING = frozenset(("lang", "noProof"))
_MAX_DEPTH = 10
"""The maximum nesting depth of containers and fields whose content is translated."""


@dataclass(frozen=True, eq=False)
class Leaf:
    """An element within a run, or between runs. run: the enclosing run, or None between runs."""

    element: Element
    run: Element | None

    @cached_property
    def text(self) -> str | None:
        """The text of the element, or None if it is not a text element."""
        if local_name(self.element) != "t":
            return None
        text = (self.element.text or "") + "".join(each.tail or "" for each in self.element)
        is_preserved = self.element.get("{http://www.w3.org/XML/1998/namespace}space") == "preserve"
        return text if is_preserved else text.strip(" \t\r\n")


@dataclass(frozen=True, eq=False)
class Container:
    """Pieces within a container.

    The container is either an element, whose child `content` contains the pieces, or a field, whose leaves before and
    after the pieces are `first` and `last`.
    """

    pieces: Sequence["Piece"]
    element: Element | None = None
    content: Element | None = None
    first: Sequence[Leaf] = ()
    last: Sequence[Leaf] = ()


@dataclass(frozen=True, eq=False)
class OpaqueField:
    """A field whose result is not translated, such as a page number. pieces: the whole field."""

    pieces: Sequence["Piece"]


Piece = Leaf | Container | OpaqueField


def split_pieces(parent: Element, depth: int = 0) -> list[Piece]:
    """Return the pieces of a paragraph or container. The paragraphs of text boxes are not included."""
    result: list[Piece] = []
    for each in parent:
        name = local_name(each)
        if name == "r":
            result += [Leaf(inner, each) for inner in each if local_name(inner) != "rPr"]
        elif name in _CONTAINERS and depth < _MAX_DEPTH and not _is_fixed_control(each):
            inner = child(each, "sdtContent") if name == "sdt" else each
            result.append(
                Leaf(each, None)
                if inner is None
                else Container(split_pieces(inner, depth + 1), element=each, content=inner)
            )
        elif not is_property(each):
            result.append(Leaf(each, None))
    return _group_fields(result)


def is_property(element: Element) -> bool:
    """Return whether an element contains properties of its parent and therefore stays in place."""
    return local_name(element).endswith("Pr")


def text_leaves(pieces: Iterable[Piece]) -> Iterator[Leaf]:
    """Yield all leaves that are text."""
    for piece in pieces:
        if isinstance(piece, Leaf):
            if piece.text is not None:
                yield piece
        else:
            yield from text_leaves(piece.pieces)


def format_key(run: Element | None) -> str:
    """Return a key that is equal for runs with the same visible format. The proofing language is ignored."""
    properties = None if run is None else child(run, "rPr")
    if properties is None:
        return ""
    etree = import_optional("lxml.etree", "documents", "lxml")
    visible = [each for each in properties if local_name(each) not in _PROOFING]
    serialised = [etree.tostring(each, method="c14n", exclusive=True, with_tail=False) for each in visible]
    return b"".join(serialised).decode()


def _is_link(container: Container | None) -> bool:
    return container is not None and (container.element is None or local_name(container.element) == "hyperlink")


def _is_raised(run: Element | None) -> bool:
    """Return whether a run is raised or lowered, such as an exponent."""
    properties = None if run is None else child(run, "rPr")
    found = [] if properties is None else [child(properties, name) for name in ("vertAlign", "position")]
    return any(each is not None and attribute(each, "val") not in (None, "baseline", "0") for each in found)


def _is_fixed_control(element: Element) -> bool:
    """Return whether the text of a content control must not change, because it is a list value or stored elsewhere."""
    properties = child(element, "sdtPr")
    if properties is None:
        return False
    return any(isinstance(each.tag, str) and each.tag.rpartition("}")[2] in _FIXED_CONTROLS for each in properties)


def _group_fields(pieces: Sequence[Piece]) -> list[Piece]:
    """Replace the pieces of each complete field with a single piece."""
    result: list[Piece] = []
    open_fields: list[int] = []
    for piece in pieces:
        role = _role(piece)
        result.append(piece)
        if role == "begin":
            open_fields.append(len(result) - 1)
        elif role == "end" and open_fields:
            begin = open_fields.pop()
            if len(open_fields) < _MAX_DEPTH:
                result[begin:] = [_field(result[begin:])]
    return result


def _role(piece: Piece) -> str | None:
    if isinstance(piece, Leaf) and local_name(piece.element) == "fldChar":
        return attribute(piece.element, "fldCharType")
    return None


def _field(pieces: Sequence[Piece]) -> Piece:
    """Combine the pieces of a field. The text of a hyperlink is translatable, and the result of other fields is not."""
    middle = next((index for index, piece in enumerate(pieces) if _role(piece) == "separate"), None)
    if middle is None:
        return OpaqueField(pieces)
    first = [piece for piece in pieces[: middle + 1] if isinstance(piece, Leaf)]
    codes = "".join("".join(leaf.element.itertext()) for leaf in first if local_name(leaf.element) == "instrText")
    if codes.split()[:1] != ["HYPERLINK"] or len(first) <= middle:
        return OpaqueField(pieces)
    last = pieces[-1]
    assert isinstance(last, Leaf)
    return Container(pieces[middle + 1 : -1], first=first, last=[last])


# these characters enclose the number of a mark; they are invalid in XML, so they cannot occur in text
_BEGIN, _END = "\x01", "\x02"
_MARK = re.compile(f"{_BEGIN}([0-9]+){_END}")
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_UNIT = re.compile(r"( {3,})|([ \t\r\n]+)|.", re.DOTALL)
_WITHIN_TEXT = frozenset(("tab", "ptab", "br", "cr", "noBreakHyphen", "softHyphen"))
_PRESERVE = "{http://www.w3.org/XML/1998/namespace}space"


def replace_forbidden(text: str, _: bool = False) -> str:
    """Replace the characters of a translation that are invalid in XML."""
    return _FORBIDDEN.sub("\ufffd", re.sub(r"[\t\r\n]", " ", text))


@dataclass(frozen=True)
class _Span:
    """A container, or text whose format differs from its surroundings. run: the run whose format the text has."""

    container: Container | None
    run: Element | None


class Paragraph:
    """A paragraph, `w:p`.

    passage: the text of the paragraph, in which formats, links and all other elements are numbered marks, or None for
    an empty paragraph.
    """

    def __init__(self, element: Element, languages: Languages = UNKNOWN) -> None:
        """languages: of the text and its translation, in which its language and its direction change."""
        self._element, self._languages = element, languages
        self._marks: list[Piece | _Span | None] = []
        pieces = split_pieces(element)
        self._base = _most_common_run(pieces)
        builder = PassageBuilder(replace_forbidden)
        self._add(builder, pieces, self._base)
        result: list[str | Passage] = []
        builder.finish(result.append)
        self.passage = next((each for each in result if isinstance(each, Passage)), None)

    def write(self, text: str) -> None:
        """Replace the content of the paragraph. text: the translation of the passage, including its marks."""
        stack: list[tuple[Element, Element | None, Container | None]] = [
            (_remove_content(self._element), self._base, None)
        ]
        writer = _Writer(self._languages.target)
        for index, part in enumerate(_MARK.split(text)):
            parent, run, container = stack[-1]
            mark = self._marks[int(part)] if index % 2 else None
            if index % 2 == 0:
                writer.text(parent, run, part)
            elif isinstance(mark, _Span):
                if mark.container is not None:
                    parent = writer.begin(parent, mark.container)
                stack.append((parent, run if mark.run is None else mark.run, mark.container))
            elif mark is not None:
                writer.piece(parent, mark)
            elif len(stack) > 1:
                stack.pop()
                for leaf in () if container is None else container.last:
                    writer.piece(parent, leaf)
        set_paragraph_direction(self._element, self._languages.new_direction)

    def _add(self, builder: PassageBuilder, pieces: Sequence[Piece], base: Element | None) -> None:
        """Add pieces to the builder. base: the run whose format needs no marks."""
        base_format, index = format_key(base), 0
        while index < len(pieces):
            piece = pieces[index]
            if isinstance(piece, Container):
                own_run = _most_common_run(piece.pieces)
                name = self._open(builder, _Span(piece, own_run))
                self._add(builder, piece.pieces, own_run if own_run is not None else base)
                self._close(builder, name)
            elif isinstance(piece, Leaf) and _has_visible_text(piece) and format_key(piece.run) != base_format:
                end = _end_of_format(pieces, index)
                name = self._open(builder, _Span(None, piece.run))
                for leaf in pieces[index:end]:
                    self._add_leaf(builder, leaf)
                self._close(builder, name)
                index = end
                continue
            else:
                self._add_leaf(builder, piece)
            index += 1

    def _open(self, builder: PassageBuilder, span: _Span) -> str:
        raw = self._number(span)
        style: Style = "separate" if _is_link(span.container) else "raised" if _is_raised(span.run) else "emphasis"
        builder.add_mark("open", (raw,), raw, style=style)
        return raw

    def _close(self, builder: PassageBuilder, name: str) -> None:
        builder.add_mark("close", (self._number(None),), name)

    def _number(self, mark: Piece | _Span | None) -> str:
        """Assign a number to a mark and return its representation in text. None closes the innermost span."""
        self._marks.append(mark)
        return f"{_BEGIN}{len(self._marks) - 1}{_END}"

    def _add_leaf(self, builder: PassageBuilder, piece: Piece) -> None:
        if isinstance(piece, Leaf) and piece.text is not None:
            _add_text(builder, piece.text)
            return
        raw = self._number(piece)
        if not isinstance(piece, Leaf):
            builder.add_code("".join(leaf.text or "" for leaf in text_leaves(piece.pieces)), raw)
            return
        match local_name(piece.element):
            case "tab" | "ptab":
                builder.add_text("\t", raw)
            case "br" | "cr":
                builder.add_line_break(raw)
            case "noBreakHyphen":
                builder.add_text("-", raw)
            case "fldSimple":
                builder.add_code("".join(leaf.text or "" for leaf in text_leaves(split_pieces(piece.element))), raw)
            case _:
                builder.add_mark("empty", (raw,))


class _Writer:
    """Writes text and other elements into runs. Adjacent text in the same format shares a run."""

    def __init__(self, language: str | None) -> None:
        """language: the spelling language of the text, or None to keep the languages of its formats."""
        self._language = language
        self._last: Element | None = None
        self._last_key: Element | str = ""

    def text(self, parent: Element, format_run: Element | None, text: str) -> None:
        """Write text in the format of the run `format_run`."""
        if not text:
            return
        run = self._run(parent, format_run, format_key(format_run))
        properties = child(run, "rPr")
        if self._language is not None and properties is not None:
            set_run_language(properties, self._language)
        last = run[-1] if len(run) else None
        if last is None or local_name(last) != "t":
            last = _append(run, "t", parent)
        last.text = (last.text or "") + text
        if last.text != " ".join(last.text.split()):
            last.set(_PRESERVE, "preserve")

    def begin(self, parent: Element, container: Container) -> Element:
        """Start a container and return the element to which its pieces are added."""
        for leaf in container.first:
            self.piece(parent, leaf)
        if container.element is None:
            return parent
        parent.append(container.element)
        return _remove_content(container.content)

    def piece(self, parent: Element, piece: Piece) -> None:
        """Write a piece unchanged."""
        if isinstance(piece, Leaf):
            if piece.run is None:
                parent.append(piece.element)
            else:
                within_text = local_name(piece.element) in _WITHIN_TEXT
                self._run(parent, piece.run, format_key(piece.run) if within_text else piece.run).append(piece.element)
        elif isinstance(piece, OpaqueField):
            for each in piece.pieces:
                self.piece(parent, each)
        elif piece.element is not None:
            parent.append(piece.element)
        else:
            for each in (*piece.first, *piece.pieces, *piece.last):
                self.piece(parent, each)

    def _run(self, parent: Element, format_run: Element | None, key: Element | str) -> Element:
        """Return the last run if it has the given key, else a new run. key: a format key or the original run."""
        same = key is self._last_key or (isinstance(key, str) and key == self._last_key)
        if self._last is None or len(parent) == 0 or parent[-1] is not self._last or not same:
            self._last, self._last_key = _append(parent, "r", parent), key
            if format_run is not None:
                self._last.attrib.update(format_run.attrib)
                self._last.extend(deepcopy(each) for each in format_run if local_name(each) == "rPr")
        return self._last


def _append(parent: Element, name: str, format_run: Element) -> Element:
    """Append a new element to a parent, in the namespace of `format_run`."""
    etree = import_optional("lxml.etree", "documents", "lxml")
    return etree.SubElement(parent, format_run.tag[: format_run.tag.index("}") + 1] + name)


def _remove_content(element: Element) -> Element:
    """Remove everything from an element except its properties."""
    for each in list(element):
        if not is_property(each):
            element.remove(each)
    return element


def _add_text(builder: PassageBuilder, text: str) -> None:
    for unit in _UNIT.finditer(text):
        spaces, blank = unit.groups()
        if blank is not None:
            builder.add_blank(blank)
            continue
        for character in spaces or unit[0]:
            builder.add_text(character, character)


def _has_visible_text(leaf: Leaf) -> bool:
    return bool((leaf.text or "").strip())


def _most_common_run(pieces: Sequence[Piece]) -> Element | None:
    """Return the first run in the most frequent format of the text, ignoring nested pieces."""
    counts = Counter[str]()
    runs: dict[str, Element] = {}
    for piece in pieces:
        if isinstance(piece, Leaf) and _has_visible_text(piece):
            format = format_key(piece.run)
            counts[format] += len(piece.text or "")
            runs.setdefault(format, piece.run)
    return runs[counts.most_common(1)[0][0]] if counts else None


def _end_of_format(pieces: Sequence[Piece], begin: int) -> int:
    """Return the end of the text in the same format as the text at `begin`, across whitespace and other elements."""
    format, end = None, begin
    for index in range(begin, len(pieces)):
        piece = pieces[index]
        if isinstance(piece, Container):
            break
        if isinstance(piece, Leaf) and _has_visible_text(piece):
            if format not in (None, format_key(piece.run)):
                break
            format, end = format_key(piece.run), index + 1
    return end
