"""`parse_tree`: XML as a tree that knows the position of each node in the file, for changes that keep all other bytes.

lxml has no such positions. expat reports the position of each event; the end of a node is where the next event begins.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from dragoman.base.errors import DataError

MAX_DEPTH = 200
"""The deepest nesting of elements."""

MAX_NODES = 500_000
"""The maximum number of elements and texts. Parsing as many elements takes two seconds and 230 MB."""

_ATTRIBUTE = re.compile(r"(?<!\s)(\s+)([^\s=]+)\s*=\s*(\"[^\"]*\"|'[^']*')")
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(slots=True)
class Text:
    """Characters. They are data[begin:end] in the file, which differs from `text` for entities and line ends."""

    begin: int
    text: str
    end: int = 0


@dataclass(slots=True)
class Other:
    """A comment, a processing instruction, or the start or the end of a CDATA section: data[begin:end]."""

    begin: int
    end: int = 0


@dataclass(slots=True)
class Element:
    """An element, data[begin:end] with its tags and data[inner[0]:inner[1]] without.

    name, attributes: local names; space: the namespace. Attributes of other namespaces are named `{namespace}local`.
    """

    begin: int
    space: str
    name: str
    attributes: dict[str, str]
    inner: tuple[int, int] = (0, 0)
    end: int = 0
    children: list["Node"] = field(default_factory=list)

    def elements(self) -> Iterator["Element"]:
        """Yield the elements among the children."""
        return (child for child in self.children if isinstance(child, Element))

    def first(self, name: str) -> "Element | None":
        """Return the first child with a local name."""
        return next((child for child in self.elements() if child.name == name), None)

    def texts(self) -> Iterator[str]:
        """Yield all texts within the element, in order."""
        for child in self.children:
            if isinstance(child, Text):
                yield child.text
            elif isinstance(child, Element):
                yield from child.texts()


Node = Text | Other | Element


def parse_tree(data: bytes, name: str, has_doctype: bool = False) -> Element:
    """Parse a file in UTF-8, and return its root. name: of the file, for messages.

    has_doctype: whether it may name a document type, without declarations of its own. This is never read.

    Raises DataError for malformed XML, another encoding, a document type (which attacks with entities need), and for
    nesting or numbers of elements beyond the limits.
    """
    if b"\0" in data:
        raise DataError(f"{name} is not UTF-8: save it again with another program")
    return _TreeParser(data, name, has_doctype).parse()


class _TreeParser:
    def __init__(self, data: bytes, name: str, has_doctype: bool) -> None:
        self._data, self._name, self._has_doctype = data, name, has_doctype
        self._parser = expat.ParserCreate("utf-8", " ")
        self._parser.buffer_text = False
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.CommentHandler = self._parser.DefaultHandler = lambda _: self._other()
        self._parser.ProcessingInstructionHandler = lambda *_: self._other()
        self._parser.StartCdataSectionHandler = self._parser.EndCdataSectionHandler = self._other
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._root = Element(0, "", "", {})
        self._open = [self._root]
        self._last: Node | None = None  # the node that ends, or whose content begins, where the next event begins
        self._count = 0

    def parse(self) -> Element:
        try:
            self._parser.Parse(self._data, True)
        except expat.ExpatError as error:
            raise DataError(
                f"{self._name}, line {error.lineno}, column {error.offset + 1}: invalid XML: "
                f"{expat.errors.messages[error.code]}"
            ) from None
        except (ValueError, LookupError) as error:
            raise DataError(f"{self._name}: invalid XML: {error}") from None
        self._advance(len(self._data))
        return next(self._root.elements())

    def _refuse(self, *declared: object) -> None:
        if self._has_doctype and not declared[-1]:
            return
        raise DataError(f"{self._name} has a document type (DTD), which could contain attacks: delete it")

    def _advance(self, at: int) -> None:
        """Complete the last node, given the position of the next event."""
        last, self._last = self._last, None
        if isinstance(last, Text | Other):
            last.end = at
        elif last is not None:
            last.inner = at, at

    def _add(self, node: Node) -> None:
        self._count += 1
        if self._count > MAX_NODES:
            raise DataError(f"{self._name} has more than {MAX_NODES:,} elements and pieces of text: divide it")
        self._open[-1].children.append(node)
        self._last = node

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        at = self._parser.CurrentByteIndex
        self._advance(at)
        space, _, local = name.rpartition(" ")
        named = {
            key if " " not in key else "{{{}}}{}".format(*key.split(" ")): value for key, value in attributes.items()
        }
        element = Element(at, space, local, named)
        self._add(element)
        self._open.append(element)
        if len(self._open) > MAX_DEPTH:
            raise DataError(f"{self._name} has elements nested more than {MAX_DEPTH} deep")

    def _end(self, _: str) -> None:
        at = self._parser.CurrentByteIndex
        element = self._open.pop()
        is_empty = self._last is element and self._data[at - 2 : at] == b"/>"
        self._advance(at)
        if is_empty:
            element.end = at
        else:
            element.inner = element.inner[0], at
            element.end = self._data.index(b">", at) + 1

    def _text(self, text: str) -> None:
        at = self._parser.CurrentByteIndex
        self._advance(at)
        self._add(Text(at, text))

    def _other(self) -> None:
        at = self._parser.CurrentByteIndex
        self._advance(at)
        self._add(Other(at))


def with_attribute(tag: str, name: str, value: str) -> str:
    """Return a start tag with an attribute, added or replaced. name: with its prefix, if it has one."""
    written = f'"{escape_xml(value).replace(chr(34), "&quot;")}"'
    at = len(re.match(r"<[^\s/>]+", tag)[0])  # type: ignore[index]
    while found := _ATTRIBUTE.match(tag, at):
        if found[2] == name:
            return tag[: found.start(3)] + written + tag[found.end(3) :]
        at = found.end()
    return f"{tag[:at]} {name}={written}{tag[at:]}"


def attribute_span(data: bytes, element: Element, name: str) -> tuple[int, int]:
    """Return the (begin, end) bytes of the value of an attribute that an element has, without its quotes."""
    tag = data[element.begin : element.inner[0] or element.end].decode()
    at = len(re.match(r"<[^\s/>]+", tag)[0])  # type: ignore[index]
    while found := _ATTRIBUTE.match(tag, at):
        if found[2] == name:
            return tuple(element.begin + len(tag[:each].encode()) for each in (found.start(3) + 1, found.end(3) - 1))  # type: ignore[return-value]
        at = found.end()
    raise KeyError(name)


def escape_attribute(text: str, _: bool = False) -> str:
    """Return a text as the value of an attribute of XML, in quotes of any kind."""
    return re.sub(r"[\t\r\n]", " ", escape_xml(text)).replace('"', "&quot;").replace("'", "&#39;")


def escape_xml(text: str, _: bool = False) -> str:
    """Return a text as XML; characters that XML cannot contain become U+FFFD."""
    return _FORBIDDEN.sub("\ufffd", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
