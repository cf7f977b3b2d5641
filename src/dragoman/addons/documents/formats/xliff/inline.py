"""`parts_of_segment`: the content of a `<source>` as kept parts and passages, with its inline elements as markup.

Inline elements of XLIFF 1.2: https://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html#Struct_InLine; of 2.x:
https://docs.oasis-open.org/xliff/xliff-core/v2.1/xliff-core-v2.1.html#inlinecodes
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal

from dragoman.addons.documents.formats.messages.icu import first_argument, has_branches
from dragoman.addons.documents.formats.messages.message import add_message, escape_of, has_words
from dragoman.addons.documents.formats.messages.paired_placeholders import Role, paired_placeholders
from dragoman.addons.documents.formats.xml_tree import Element, Node, Text, escape_xml
from dragoman.addons.documents.passage import Passage, Style
from dragoman.addons.documents.passage_builder import PassageBuilder

_MARK = "\ufffc"
"""Stands for an inline element in the text of a segment (OBJECT REPLACEMENT CHARACTER)."""

_PAIRS = ("g", "pc", "mrk")
_OPENING, _CLOSING = ("bx", "bpt", "sc", "sm"), ("ex", "ept", "ec", "em")
_CODES = ("x", "ph")
_ANGULAR_TAG = re.compile(r"(START|CLOSE)_(.+)")
_INTERPOLATION = re.compile(r"(?:INTERPOLATION|PH|ICU|VAR)(?:_.*|[0-9]*)")
_FURTHER_BLOCK = re.compile("block_(?:else|empty|case|default|placeholder|loading|error)")
_CONTENT_LENGTH = 40
"""The longest code that is shown to the model; longer code is a mark."""


class _Segment:
    """The text of a segment, with one character per inline tag. raws: the form of each character in the target."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.raws: list[str] = []
        self.marks: dict[int, Callable[[PassageBuilder], None]] = {}
        self.codes: list[str] = []  # what identifies each code that may be one of a pair

    @cached_property
    def roles(self) -> dict[int, Role]:
        """The roles of the codes that belong together."""
        return paired_placeholders(self.codes)

    def add_mark(self, raw: str, add: Callable[[PassageBuilder], None]) -> None:
        self.marks[len(self.text)] = add
        self.text.append(_MARK)
        self.raws.append(raw)

    def add_text(self, text: str, raw: str) -> None:
        if raw == text or len(text) != 1:
            self.text += text
            self.raws += [escape_xml(each) if each in "<&" else each for each in text]  # as in a CDATA section
        else:
            self.text.append(text)
            self.raws.append(raw)


def parts_of_segment(content: Element, data: bytes) -> tuple[list[str | Passage], bool]:
    """Return the content of an element in parts, and whether it remains untranslated.

    Content remains untranslated if its plural forms or cases cannot be separated.
    """
    parts: list[str | Passage] = []
    is_opaque = False
    for segment in _segments(content.children, data):
        if isinstance(segment, str):
            parts.append(segment)
            continue
        text = "".join(segment.text)
        try:
            parts += _branches(segment, text, 0, len(text), False)
        except ValueError:
            parts.append("".join(segment.raws))
            is_opaque = True
    return parts, is_opaque


def _segments(nodes: Sequence[Node], data: bytes) -> Iterator[_Segment | str]:
    """Yield the segments of a source, which are divided by the tags of `<mrk mtype="seg">`, and these tags."""
    segment = _Segment()
    for node in nodes:
        if isinstance(node, Element) and node.name == "mrk" and node.attributes.get("mtype") == "seg":
            yield segment
            yield _raw(data, node.begin, node.inner[0])
            segment = _Segment()
            _collect(segment, node.children, data)
            yield segment
            yield _raw(data, node.inner[1], node.end)
            segment = _Segment()
        else:
            _collect(segment, [node], data)
    yield segment


def _branches(segment: _Segment, text: str, begin: int, end: int, counts: bool) -> Iterator[str | Passage]:
    """Yield the parts of text[begin:end]. counts: whether it is in a branch in which `#` is a number.

    Raises ValueError for an invalid message, and for one with words around its branches.
    """
    inner = text[begin:end]
    argument = first_argument(inner) if has_branches(inner) else None
    if argument is None:
        yield from _plain(segment, inner, begin, counts)
        return
    after = inner[argument.end :]
    if has_words(inner[: argument.begin]) or has_words(after) or has_branches(after):
        raise ValueError("words around branches")
    at = begin
    for first, last in argument.branches:
        yield "".join(segment.raws[at : begin + first])
        yield from _branches(segment, text, begin + first, begin + last, counts or argument.counts)
        at = begin + last
    yield "".join(segment.raws[at:end])


def _plain(segment: _Segment, text: str, begin: int, counts: bool) -> Iterator[str | Passage]:
    found: list[str | Passage] = []
    escape = escape_of(text)
    builder = PassageBuilder(lambda translation, starts: escape_xml(escape(translation, starts)))
    end = begin + len(text)
    marks = {at - begin: add for at, add in segment.marks.items() if begin <= at < end}
    add_message(builder, text, segment.raws[begin:end], found.append, marks=marks, counts=counts)
    builder.finish(found.append)
    yield from found


def _collect(segment: _Segment, nodes: Sequence[Node], data: bytes) -> None:
    """Add nodes to a segment. Comments and the limits of CDATA sections are not repeated in the target."""
    for node in nodes:
        if isinstance(node, Text):
            segment.add_text(node.text, _raw(data, node.begin, node.end))
        elif isinstance(node, Element):
            _collect_element(segment, node, data)


def _collect_element(segment: _Segment, element: Element, data: bytes) -> None:
    raw = _raw(data, element.begin, element.end)
    name, attributes = element.name, element.attributes
    if name == "mrk" and (attributes.get("mtype") == "protected" or attributes.get("translate") == "no"):
        text = "".join(element.texts())
        segment.add_mark(raw, lambda builder: builder.add_code(text, raw))
    elif name in _PAIRS and element.inner[0]:
        span = f"{name} {element.begin}"
        _add_tag(segment, "open", _raw(data, element.begin, element.inner[0]), span, _style_of(attributes))
        _collect(segment, element.children, data)
        _add_tag(segment, "close", _raw(data, element.inner[1], element.end), span)
    elif name in _OPENING:
        _add_tag(segment, "open", raw, f"code {attributes.get('rid') or attributes.get('id')}", _style_of(attributes))
    elif name in _CLOSING:
        partner = attributes.get("rid") or attributes.get("startRef") or attributes.get("id")
        _add_tag(segment, "close", raw, f"code {partner}")
    elif name in _CODES:
        _collect_code(segment, element, raw)
    else:
        segment.add_mark(raw, lambda builder: builder.add_mark("empty", (raw,)))


def _collect_code(segment: _Segment, element: Element, raw: str) -> None:
    """Add an `<x>` or `<ph>`: a tag of Angular, a line break, a placeholder that the model sees, or anything else."""
    attributes = element.attributes
    named = attributes.get("equiv") or attributes.get("id", "")
    angular = _ANGULAR_TAG.fullmatch(named)
    shown = "".join(element.texts()) or attributes.get("disp") or attributes.get("equiv-text") or ""
    is_tag = shown.lstrip().startswith(("<", "</"))
    if angular is not None and (is_tag or not shown or not angular[2].startswith("BLOCK_")):
        _add_tag(segment, "open" if angular[1] == "START" else "close", raw, angular[2])
    elif attributes.get("ctype") == "lb" or attributes.get("subType") == "xlf:lb" or named == "LINE_BREAK":
        segment.add_mark(raw, lambda builder: builder.add_line_break(raw))
    elif (shown and not is_tag) or _INTERPOLATION.fullmatch(named):
        code = shown if shown and len(shown) <= _CONTENT_LENGTH and shown.strip() else f"{{{named}}}"
        _add_code(segment, named if angular is not None else shown, raw, code, _style_of(attributes))
    else:
        _add_code(segment, named if angular is not None else shown, raw, None, _style_of(attributes))


def _add_code(segment: _Segment, identity: str, raw: str, code: str | None, style: Style) -> None:
    """Add a code, which is a mark if it is one of a pair, such as `START_BLOCK_IF`, or if `code` is None."""
    number = len(segment.codes)
    segment.codes.append(identity)

    def add(builder: PassageBuilder) -> None:
        role = segment.roles.get(number)
        if role is not None:
            if role.kind == "open" and _FURTHER_BLOCK.match(role.name):
                builder.add_line_break("")  # an `@else` is an alternative to the text of its `@if`, and follows it
            builder.add_mark(role.kind, (raw,), f"pair {role.name}", style=style)
        elif code is None:
            builder.add_mark("empty", (raw,))
        else:
            builder.add_code(code, raw)

    segment.add_mark(raw, add)


def _add_tag(segment: _Segment, kind: Literal["open", "close"], raw: str, span: str, style: Style = "emphasis") -> None:
    segment.add_mark(raw, lambda builder: builder.add_mark(kind, (raw,), span, style=style))


def _raw(data: bytes, begin: int, end: int) -> str:
    return data[begin:end].decode()


def _style_of(attributes: Mapping[str, str]) -> Style:
    """Return how an element relates to the word that it is a part of, by its type, such as `x-sup` or `link`."""
    type = attributes.get("ctype") or attributes.get("subType") or ""
    tag = type.rpartition(":")[2].removeprefix("x-").removeprefix("html-").lower()
    return "separate" if tag in ("link", "a") else "raised" if tag.startswith(("sup", "sub")) else "emphasis"
