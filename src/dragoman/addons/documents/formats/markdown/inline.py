"""Converts the inline markup of a Markdown block to a passage."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dragoman.addons.documents.formats.html.elements import BLOCK_TAGS, COPIED_TAGS, is_separate_piece, style_of
from dragoman.addons.documents.formats.markdown.block import Block, Source
from dragoman.addons.documents.formats.markdown.dialects import Element
from dragoman.addons.documents.formats.markdown.embedded_html.tags import InlineTag, kept_elements
from dragoman.addons.documents.formats.markdown.writing import mark_anchors, mark_key, mark_label, without_markers
from dragoman.addons.documents.passage import MarkKind, Passage, Raw, raw_text
from dragoman.addons.documents.passage_builder import PassageBuilder

_LINE_END = re.compile(r"[ \t]*\\?\n[ \t]*")
_KEY_ENDS = ("]", "][]")


class _PositionError(Exception):
    """Raised if a token is not at the expected position."""


@dataclass
class _InlineReader:
    """Converts the inline tokens of a block to a passage.

    ends: the end of each link, image, note and code span by its start; at: the index of the next character; ahead: the
    number of characters before it that belong to tokens which are not read yet.
    """

    block: Block
    source: Source
    ends: Mapping[int, int]
    builder: PassageBuilder
    at: int = 0
    ahead: int = 0
    links: list[tuple[int, int]] = field(default_factory=list)
    _inside_address: bool = False

    def read(self, tokens: Sequence[Any]) -> None:
        """Add the tokens to the builder. Raises _PositionError if a token cannot be located."""
        tags = {index: InlineTag(token.content) for index, token in enumerate(tokens) if token.type == "html_inline"}
        kept = kept_elements(tags, self.source.languages)
        index = 0
        while index < len(tokens):
            end = kept.get(index, index)
            if end > index:
                self._add_kept(tokens[index : end + 1], tags[index])
            elif index in tags:
                self._add_tag(tokens[index], tags[index])
            else:
                self._read(tokens[index])
            index = end + 1
        if self.block.content[self.at :].strip():
            raise _PositionError

    def _read(self, token: Any) -> None:
        if token.markup == "autolink" and token.type in ("link_open", "link_close"):
            self._inside_address = token.type == "link_open"
            if self._inside_address:
                raw = self._advance(self._end())
                self.builder.add_code(raw[1:-1], raw)
            return
        if self._inside_address:
            return
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
        return self.source.text[self.block.positions[begin] : self.block.positions[end]]

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
        element = self.source.masked.elements.get(position)
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
        code = raw[ticks:-ticks] if self.source.masked.is_mask.search(token.content) else token.content
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
            elif self.source.masked.is_mask.match(character):  # a part of an element
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
        self.builder.add_mark("open", (mark_label(opening) if is_key else opening,), "link", style="separate")

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

    def _add_tag(self, token: Any, tag: InlineTag) -> None:
        raw = self._expect(token.content)
        name = "" if tag.token is None else tag.token.name
        # the lines of a tag may have prefixes in the document, and its pipes backslashes
        parts = tag.parts(self.source.languages) if raw == token.content else (mark_anchors(raw),)
        if name == "br":
            self.builder.add_line_break(raw)
        elif name in BLOCK_TAGS:  # in tables, for example lists
            self.builder.add_line_break("")
            self.builder.add_mark("empty", parts)
            self.builder.add_line_break("")
        elif tag.token is None or tag.attributes is None or tag.is_void:
            self.builder.add_mark("empty", parts)
        else:
            is_piece = is_separate_piece(name, tag.attributes.values)
            kind: MarkKind = "open" if tag.token.kind == "start" else "close"
            self.builder.add_mark(kind, parts, name, keep_source=is_piece, style=style_of(name))

    def _add_kept(self, tokens: Sequence[Any], tag: InlineTag) -> None:
        """Add an untranslated element: as code to copy, or as a mark if it has no words."""
        begin, builder = self.at, self.builder
        self.builder = PassageBuilder(self.block.escape)
        self._expect(tokens[0].content)
        for token in tokens[1:-1]:
            if token.type == "html_inline":
                self._expect(token.content)
            else:
                self._read(token)
        text_parts: list[str | Passage] = []
        self.builder.finish(text_parts.append)
        self.builder = builder
        self._expect(tokens[-1].content)
        raw = self._raw(begin, self.at)
        text = "".join("".join(part.texts) for part in text_parts if isinstance(part, Passage))
        assert tag.token is not None
        is_word = tag.token.name in COPIED_TAGS or (tag.attributes is not None and tag.attributes.translate is False)
        is_word |= tag.attributes is not None and tag.attributes.language is not None
        if is_word:
            self.builder.add_code(text, raw)
        else:
            self.builder.add_mark("empty", (raw,))

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
        inner = build_passage(self.block.part(begin, end), self.source)
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


def build_passage(block: Block, source: Source) -> Passage | None:
    """Return a block as a passage, or None if its markup cannot be located."""
    tokens, ends = source.parser.tokens(block.content, source.environment)
    builder = PassageBuilder(block.escape)
    reader = _InlineReader(block, source, ends, builder)
    try:
        reader.read(tokens)
    except _PositionError:
        return None
    result: list[str | Passage] = []
    builder.finish(result.append)
    passage = result[0] if result else None
    whole = source.text[block.positions[0] : block.positions[-1]]
    return passage if isinstance(passage, Passage) and without_markers(raw_text(passage)) == whole else None
