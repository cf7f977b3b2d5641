"""Parses Markdown documents. Text is translated, and blocks and markup are preserved.

The blocks and the markup are those of CommonMark, with tables and the elements of `dialects`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dragoman.addons.documents.formats.format import ParsedDocument
from dragoman.addons.documents.formats.markdown.block import Block, Source, block_positions
from dragoman.addons.documents.formats.markdown.dialects import MaskedText, iterate_elements, mask_dialects
from dragoman.addons.documents.formats.markdown.embedded_html.blocks import split_html_block, untranslated_blocks
from dragoman.addons.documents.formats.markdown.front_matter.front_matter import FrontMatter, find_front_matter
from dragoman.addons.documents.formats.markdown.front_matter.passages import front_passages
from dragoman.addons.documents.formats.markdown.headings import Heading, translated_anchors
from dragoman.addons.documents.formats.markdown.inline import build_passage
from dragoman.addons.documents.formats.markdown.parser import MarkdownParser
from dragoman.addons.documents.formats.markdown.writing import (
    EscapeWriter,
    escape_cell,
    escape_heading,
    escape_paragraph,
    has_markers,
    mark_anchors,
    write_anchors,
    write_languages,
)
from dragoman.addons.documents.languages import UNKNOWN, Languages
from dragoman.addons.documents.passage import Escape, Passage, raw_text
from dragoman.base.log import warn

_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")
_TASK = re.compile(r"\[[ xX]\][ \t]+")
_OTHER_DOCUMENT = re.compile(
    r"\]\(\s*<?(?![a-z]+:)[^\s()<>#]+#[^\s()<>]+|^[ ]{0,3}\[[^\]\n]+\]:[ \t]*<?(?![a-z]+:)[^\s#]+#", re.M
)
_BLOCK_ESCAPES: dict[str, Escape] = {"heading_open": escape_heading, "th_open": escape_cell, "td_open": escape_cell}


@dataclass
class MarkdownDocument:
    """The parts of a document, and what is needed to write them.

    front: the front matter; front_lengths: the number of parts of each of its values, which are the first parts. The
    other parts follow the front matter in the document.
    """

    parser: MarkdownParser
    front: FrontMatter
    environment: Any = field(default_factory=dict)
    front_lengths: list[int] = field(default_factory=list)
    parts: list[str | Passage] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)

    def write(self, texts: Sequence[str]) -> str:
        """Return the document with a text for each part."""
        writer = EscapeWriter(self.parser, self.environment)
        written = [writer.write(text) if has_markers(text) else text for text in texts]
        if any(has_markers(text) for text in written):
            sources = (part if isinstance(part, str) else raw_text(part) for part in self.parts)
            is_translated = any(text != source for text, source in zip(texts, sources, strict=True))
            written = [write_languages(text, is_translated) for text in written]
            anchors = translated_anchors(self.headings, writer, written)
            written = [write_anchors(text, anchors) for text in written]
        values, begin = [], 0
        for length in self.front_lengths:
            values.append("".join(written[begin : begin + length]))
            begin += length
        return self.front.write(values) + "".join(written[begin:])


def parse_markdown(text: str, languages: Languages = UNKNOWN) -> ParsedDocument[str]:
    """Parse a document into untranslated parts and passages.

    There is a passage for each heading, paragraph and table cell, for each text of a block of HTML, and for each
    paragraph of the titles and descriptions in the front matter. A block whose text cannot be located in the document
    remains untranslated, with a warning.
    """
    parser = MarkdownParser()
    front = find_front_matter(text)
    begin = len(front.source)
    masked = mask_dialects(text, begin)
    tokens, environment = parser.blocks(masked, begin)
    document = MarkdownDocument(parser, front, environment)
    for value in front.values:
        passages = front_passages(value.text, parser, languages)
        document.parts += passages
        document.front_lengths.append(len(passages))
    _BlockReader(document, Source(text, masked, parser, environment, languages), begin).read(tokens)
    _warn_other_documents(text)
    return ParsedDocument(document.parts, document.write)


class _BlockReader:
    """Adds the blocks of a document to its parts. begin: the position after the front matter."""

    def __init__(self, document: MarkdownDocument, source: Source, begin: int) -> None:
        self._document, self._source, self._text = document, source, source.text
        self._lines = [match.span() for match in _LINE.finditer(source.text, begin) if match[0]]
        lines = _definition_lines(source.environment)
        self._kept = _KeptText(source.text, [self._lines[line][0] for line in lines if line < len(self._lines)])
        self._at = self._cell = begin
        self._unlocated: list[int] = []

    def read(self, tokens: Sequence[Any]) -> None:
        """Add all blocks."""
        previous = ["", ""]
        kept = untranslated_blocks(tokens, self._source.languages)
        for index, token in enumerate(tokens):
            if index in kept:
                self._add_kept_heading(token, previous)
            elif token.type == "inline" and token.content:
                self._read_text(token, previous)
            elif token.type == "html_block":
                self._read_html(token)
            else:
                previous = [previous[1], token.type]
        self._document.parts += self._kept.between(self._at, len(self._text))
        self._warn("their markup could not be located", self._unlocated)
        tables = [self._lines[line][0] for line in self._source.parser.incomplete_tables]
        self._warn("they are tables in which too many cells are missing", tables)

    def _add_kept_heading(self, token: Any, previous: list[str]) -> None:
        """Add the heading of an untranslated block, if it is one: links may lead to it."""
        if token.type == "inline" and previous[1] == "heading_open":
            self._document.headings.append(Heading(token.content))

    def _read_text(self, token: Any, previous: list[str]) -> None:
        """Add the text of a block. previous: the types of the two tokens before it."""
        is_heading = previous[1] == "heading_open"
        escape = _BLOCK_ESCAPES.get(previous[1], escape_paragraph)
        block = self._locate(token, token.content, escape)
        if block is None:
            self._add_kept_heading(token, previous)
            return
        is_first_of_item = previous == ["list_item_open", "paragraph_open"]
        found: list[int] = []
        for part in _split_block(block, self._source.masked, is_first_of_item):
            if part.content.strip():
                passage = build_passage(part, self._source)
                if passage is None:
                    self._unlocated.append(part.positions[0])
                    continue
                found.append(self._add(passage, part))
        if is_heading:
            source = self._text[block.positions[0] : block.positions[-1]]
            # what is around a heading's passages, such as its id, is not a part of its text
            self._document.headings.append(Heading(source, *((found[0], found[-1] + 1) if found else ())))
        self._cell = block.positions[-1]

    def _read_html(self, token: Any) -> None:
        """Add a block of HTML."""
        block = self._locate(token, token.content.rstrip("\n"), escape_paragraph)
        html = None if block is None else split_html_block(block, self._source)
        if block is None or html is None:
            if block is not None:
                self._unlocated.append(block.positions[0])
            return
        parts = self._document.parts
        parts += self._kept.between(self._at, block.positions[0])
        first = len(parts)
        parts += html.parts
        self._document.headings += [
            Heading(each.source, first + each.begin, first + each.end, is_html=True) for each in html.headings
        ]
        self._at = block.positions[-1]

    def _locate(self, token: Any, content: str, escape: Escape) -> Block | None:
        """Return a block with its positions, or None, with a warning, if they are unknown."""
        first, last = token.map
        lines = self._lines[first : max(last, first + 1)]
        positions = block_positions(content, self._source.masked, lines, self._cell)
        if positions is None:
            self._unlocated.append(self._lines[first][0])
            return None
        return Block(content, positions, escape)

    def _add(self, passage: Passage, block: Block) -> int:
        """Add a passage, and return its index."""
        parts = self._document.parts
        parts += self._kept.between(self._at, block.positions[0])
        parts.append(passage)
        self._at = block.positions[-1]
        return len(parts) - 1

    def _warn(self, reason: str, positions: Sequence[int]) -> None:
        """Warn of untranslated blocks, if there are any. positions: their positions in the document."""
        if positions:
            line = self._text.count("\n", 0, positions[0]) + 1
            warn(f"{len(positions):,} block(s) of Markdown remain untranslated, the first in line {line}: {reason}")


def _warn_other_documents(text: str) -> None:
    count = sum(1 for _ in _OTHER_DOCUMENT.finditer(text))
    if count:
        warn(
            f"{count:,} link(s) lead to headings of other documents. They remain unchanged: if those documents are "
            "translated too, check the links, or give the headings explicit ids"
        )


@dataclass
class _KeptText:
    """The untranslated parts of a document. definitions: the positions of link definitions, in order."""

    text: str
    definitions: list[int]
    _next: int = 0

    def between(self, begin: int, end: int) -> Iterator[str]:
        """Yield the text between two positions, in which links to headings are marked."""
        while self._next < len(self.definitions) and self.definitions[self._next] < end:
            start = self.definitions[self._next]
            self._next += 1
            if start < begin:
                continue
            stop = self.text.find("\n", start)
            stop = min(end, len(self.text) if stop < 0 else stop)
            yield self.text[begin:start]
            yield mark_anchors(self.text[start:stop])
            begin = stop
        yield self.text[begin:end]


def _definition_lines(environment: Any) -> list[int]:
    references = environment.get("references", {}).values()
    return sorted({each["map"][0] for each in references if each.get("map")})


def _split_block(block: Block, masked: MaskedText, is_first_of_item: bool) -> Iterator[Block]:
    """Yield the parts of a block that are translated separately. Lines that consist of markup end a part."""
    task = _TASK.match(block.content) if is_first_of_item else None
    begin = index = 0 if task is None else task.end()
    for line in block.content[index:].split("\n"):
        end = index + len(line)
        start = index + len(line) - len(line.lstrip(" \t"))
        elements = list(iterate_elements(masked, block.positions[start], block.positions[end])) if line.strip() else []
        element = masked.elements.get(block.positions[start]) if start < end else None
        if elements and all(each.kind != "code" for _, each in elements):
            yield block.part(begin, max(begin, index - 1))
            begin = end
        elif element is not None and element.kind == "line":
            yield block.part(begin, max(begin, index - 1))
            yield block.part(start + element.end - block.positions[start], end)
            begin = end
        index = end + 1
        if begin == end:
            begin = min(index, len(block.content))
    yield block.part(begin, len(block.content))
