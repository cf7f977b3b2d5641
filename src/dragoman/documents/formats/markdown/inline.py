"""Converts the inline markup of a Markdown block to a passage."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dragoman.documents.formats.markdown.dialects import Element, MaskedText
from dragoman.documents.formats.markdown.parser import MarkdownParser
from dragoman.documents.formats.markdown.writing import mark_anchors, mark_key, mark_label, without_markers
from dragoman.documents.passage import Escape, Passage, PassageBuilder, Raw, raw_text

_LINE_END = re.compile(r"[ \t]*\\?\n[ \t]*")
_TAG = re.compile(r"<(/?)([A-Za-z][\w-]*)")
_VOID_TAGS = ("img", "wbr", "input")
_KEY_ENDS = ("]", "][]")


class _PositionError(Exception):
    """Raised if a token is not at the expected position."""


@dataclass(frozen=True)
class Block:
    """The text of a block or of a part of it.

    content: the text for the parser, without the prefixes of its lines; positions: the position in the document of each
    character of `content` and of its end; escape: encodes the text of a translation.
    """

    content: str
    positions: Sequence[int]
    escape: Escape

    def part(self, begin: int, end: int) -> "Block":
        """Return a part of the block."""
        return Block(self.content[begin:end], self.positions[begin : end + 1], self.escape)


@dataclass
class _InlineReader:
    """Converts the inline tokens of a block to a passage.

    text: the document; ends: the end of each link, image, note and code span by its start; at: the index of the next
    character; ahead: the number of characters before it that belong to tokens which are not read yet.
    """

    block: Block
    text: str
    masked: MaskedText
    parser: MarkdownParser
    environment: Any
    ends: Mapping[int, int]
    builder: PassageBuilder
    at: int = 0
    ahead: int = 0
    links: list[tuple[int, int]] = field(default_factory=list)

    def read(self, tokens: Sequence[Any]) -> None:
        """Add the tokens to the builder. Raises _PositionError if a token cannot be located."""
        inside_address = False
        for token in tokens:
            if token.markup == "autolink" and token.type in ("link_open", "link_close"):
                inside_address = token.type == "link_open"
                if inside_address:
                    raw = self._advance(self._end())
                    self.builder.add_code(raw[1:-1], raw)
            elif not inside_address:
                self._read(token)
        if self.block.content[self.at :].strip():
            raise _PositionError

    def _read(self, token: Any) -> None:
        match token.type:
            case "text":
                self._add_text(token.content)
            case "text_special" if token.content == token.markup:  # a literal backslash
                self._add_text(token.content)
            case "text_special":
                self.builder.add_text(token.content, self._expect(token.markup))
            case "softbreak":
                self.builder.add_blank(self._line_end())
            case "hardbreak":
                self.builder.add_line_break(self._line_end())
            case "code_inline":
                self._add_code(token)
            case "image":
                self.builder.add_mark("empty", self._image(token))
            case "footnote_inline":
                self.builder.add_mark("empty", self._inline_footnote(token))
            case "link_open":
                self._open_link()
            case "link_close":
                self._close_link()
            case "html_inline":
                self._add_tag(mark_anchors(self._expect(token.content)))
            case _ if token.nesting and token.markup:
                raw = self._expect(token.markup)
                if token.nesting < 0:
                    raw += self._attached()
                self.builder.add_mark(
                    "open" if token.nesting > 0 else "close", (raw,), token.markup, must_contain_text=True
                )
            case _:
                raise _PositionError

    def _raw(self, begin: int, end: int) -> str:
        return self.text[self.block.positions[begin] : self.block.positions[end]]

    def _advance(self, end: int) -> str:
        """Advance to a position and return the corresponding part of the document."""
        raw = self._raw(self.at, end)
        self.at = end
        return raw

    def _expect(self, content: str) -> str:
        if not self.block.content.startswith(content, self.at):
            raise _PositionError
        return self._advance(self.at + len(content))

    def _end(self) -> int:
        if self.at not in self.ends:
            raise _PositionError
        return self.ends[self.at]

    def _line_end(self) -> str:
        result = _LINE_END.match(self.block.content, self.at)
        if result is None:
            raise _PositionError
        return self._advance(result.end())

    def _element(self, index: int) -> Element | None:
        """Return the dialect's element at an index of the content."""
        if index >= len(self.block.content):
            return None
        position = self.block.positions[index]
        element = self.masked.elements.get(position)
        if element is None or index + element.end - position > len(self.block.content):
            return None
        return element

    def _attached(self) -> str:
        """Advance past the attributes and notes that directly follow, and return them."""
        begin = self.at
        while (element := self._element(self.at)) is not None and element.kind == "attached":
            self.at += element.end - self.block.positions[self.at]
        self.ahead = self.at - begin
        return self._raw(begin, self.at)

    def _add_code(self, token: Any) -> None:
        raw = self._advance(self._end())
        ticks = len(token.markup)
        code = raw[ticks:-ticks] if self.masked.is_mask.search(token.content) else token.content
        self.builder.add_code(code, raw + self._attached())

    def _add_text(self, content: str) -> None:
        content, self.ahead = content[self.ahead :], 0
        end = self.at + len(content)
        if not self.block.content.startswith(content, self.at):
            raise _PositionError
        while self.at < end:
            element = self._element(self.at)
            if element is not None:
                self._add_element(element)
                continue
            character = self.block.content[self.at]
            raw = self._advance(self.at + 1)
            if character in " \t":
                self.builder.add_blank(raw)
            elif self.masked.is_mask.match(character):  # a part of an element
                self.builder.add_mark("empty", (raw,))
            else:
                self.builder.add_text(character, raw)

    def _add_element(self, element: Element) -> None:
        raw = self._advance(self.at + element.end - self.block.positions[self.at])
        match element.kind:
            case "code" | "template":
                self.builder.add_code(raw, raw)
            case "open" | "close":
                self.builder.add_mark(element.kind, (raw,), element.name, must_contain_text=True)
            case _:
                self.builder.add_mark("empty", (raw,))

    def _open_link(self) -> None:
        begin, end = self.at, self._end()
        self.links.append((begin, end))
        opening = self._expect("[")
        is_key = not self._raw(begin, end).endswith(")") and self._has_key_as_text(begin, end)
        self.builder.add_mark("open", (mark_label(opening) if is_key else opening,), "link")

    def _close_link(self) -> None:
        begin, end = self.links.pop()
        is_key = not self._raw(begin, end).endswith(")") and self._has_key_as_text(begin, end)
        text_end = self.at
        closing = self._advance(end)
        raw = mark_key(self._raw(begin + 1, text_end), closing) if is_key else mark_anchors(closing)
        self.builder.add_mark("close", (raw + self._attached(),), "link")

    def _has_key_as_text(self, begin: int, end: int) -> bool:
        """Return whether a link or image is a shortcut `[key]` or a collapsed reference `[key][]`."""
        content = self.block.content[begin:end]
        return content.endswith("[]") or not _has_two_parts(content)

    def _add_tag(self, raw: str) -> None:
        tag = _TAG.match(raw)
        name = "" if tag is None else tag[2].lower()
        if tag is not None and name == "br":
            self.builder.add_line_break(raw)
        elif tag is None or raw.endswith("/>") or name in _VOID_TAGS:
            self.builder.add_mark("empty", (raw,))
        else:
            self.builder.add_mark("close" if tag[1] else "open", (raw,), name)

    def _image(self, token: Any) -> Raw:
        """Return an image, with a passage for its description if the description is plain text."""
        end, children = self._end(), token.children or ()
        begin = self.at
        description = "".join(child.content for child in children)
        plain = all(child.type == "text" for child in children) and description.strip() != ""
        if not plain or not self.block.content.startswith(f"![{description}]", self.at):
            return (self._advance(end), self._attached())
        opening = self._expect("![")
        text_end = self.at + len(description)
        closing = self._raw(text_end, end)
        is_key = closing in _KEY_ENDS
        parts: list[str | Passage] = [mark_label(opening) if is_key else opening]
        parts += self._nested(self.at, text_end)
        self.at = end
        parts.append(mark_key(self._raw(begin + 2, text_end), closing) if is_key else closing)
        return (*parts, self._attached())

    def _inline_footnote(self, token: Any) -> Raw:
        """Return a note `^[text]`, whose text is a passage."""
        end = self._end()
        opening = self._expect("^[")
        parts = self._nested(self.at, end - 1)
        self.at = end - 1
        return (opening, *parts, self._advance(end))

    def _nested(self, begin: int, end: int) -> list[str | Passage]:
        """Return the text of a mark as a passage, or as it is if it has no text that can be located."""
        inner = build_passage(self.block.part(begin, end), self.text, self.masked, self.parser, self.environment)
        return [self._raw(begin, end) if inner is None else inner]


def _has_two_parts(content: str) -> bool:
    """Return whether a reference link has a text and a key."""
    depth, index = 0, 0
    while index < len(content):
        if content[index] == "\\":
            index += 1
        elif content[index] == "[":
            depth += 1
        elif content[index] == "]":
            depth -= 1
            if not depth:
                return index + 1 < len(content)
        index += 1
    return False


def build_passage(
    block: Block, text: str, masked: MaskedText, parser: MarkdownParser, environment: Any
) -> Passage | None:
    """Return a block as a passage, or None if its markup cannot be located. text: the document."""
    tokens, ends = parser.tokens(block.content, environment)
    builder = PassageBuilder(block.escape)
    reader = _InlineReader(block, text, masked, parser, environment, ends, builder)
    try:
        reader.read(tokens)
    except _PositionError:
        return None
    result: list[str | Passage] = []
    reader.builder.finish(result.append)
    passage = result[0] if result else None
    whole = text[block.positions[0] : block.positions[-1]]
    return passage if isinstance(passage, Passage) and without_markers(raw_text(passage)) == whole else None
