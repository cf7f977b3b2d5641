"""Parses Markdown documents. Text is translated, and blocks and markup are preserved.

The blocks and the markup are those of CommonMark, with tables and the elements of `dialects`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dragoman.base.log import warn
from dragoman.documents.formats.format import ParsedDocument
from dragoman.documents.formats.markdown.dialects import MaskedText, iterate_elements, mask_dialects
from dragoman.documents.formats.markdown.inline import Block, build_passage
from dragoman.documents.formats.markdown.parser import MarkdownParser
from dragoman.documents.formats.markdown.writing import (
    EscapeWriter,
    escape_cell,
    escape_heading,
    escape_paragraph,
    has_markers,
    mark_anchors,
    slugs,
    without_markers,
    write_anchors,
)
from dragoman.documents.passage import Escape, Passage, raw_text

_FRONT_MATTER = re.compile(
    r"(?:---[ \t]*\r?\n(?:.*?\r?\n)?(?:---|\.\.\.)|\+\+\+[ \t]*\r?\n(?:.*?\r?\n)?\+\+\+|\{[ \t]*\r?\n.*?\r?\n\})"
    r"[ \t]*(?:\r?\n|\Z)",
    re.DOTALL,
)
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")
_TASK = re.compile(r"\[[ xX]\][ \t]+")
_EXPLICIT_ID = re.compile(r"\{:?[^{}\n]*#[^{}\n]*\}[ \t]*\Z|<a\s[^<>]*\b(?:id|name)\s*=")
_OTHER_DOCUMENT = re.compile(
    r"\]\(\s*<?(?![a-z]+:)[^\s()<>#]+#[^\s()<>]+|^[ ]{0,3}\[[^\]\n]+\]:[ \t]*<?(?![a-z]+:)[^\s#]+#", re.M
)
_BLOCK_ESCAPES: dict[str, Escape] = {"heading_open": escape_heading, "th_open": escape_cell, "td_open": escape_cell}


@dataclass
class MarkdownDocument:
    """The parts of a document, and what is needed to write them.

    headings: the index of the part of each heading, or its text if it is not translated.
    """

    parser: MarkdownParser
    environment: Any = field(default_factory=dict)
    parts: list[str | Passage] = field(default_factory=list)
    headings: list[int | str] = field(default_factory=list)

    def write(self, texts: Sequence[str]) -> str:
        """Return the document with a text for each part."""
        writer = EscapeWriter(self.parser, self.environment)
        written = [writer.write(text) if has_markers(text) else text for text in texts]
        if any(has_markers(text) for text in written):
            anchors = self._anchors(writer, written)
            written = [write_anchors(text, anchors) for text in written]
        return "".join(written)

    def _anchors(self, writer: EscapeWriter, written: Sequence[str]) -> dict[str, str]:
        """Return the anchor of each heading's translation by the anchor of its source."""
        old, new = [], []
        for heading in self.headings:
            part = heading if isinstance(heading, str) else self.parts[heading]
            source = part if isinstance(part, str) else without_markers(raw_text(part))
            if _EXPLICIT_ID.search(source):
                continue
            old.append(writer.plain_text(source))
            new.append(old[-1] if isinstance(heading, str) else writer.plain_text(written[heading]))
        return dict(zip(slugs(old), slugs(new), strict=True))


def parse_markdown(text: str) -> ParsedDocument[str]:
    """Parse a document into untranslated parts and a passage for each heading, paragraph and table cell.

    A block whose text cannot be located in the document remains untranslated, with a warning.
    """
    document = MarkdownDocument(MarkdownParser())
    front = _FRONT_MATTER.match(text)
    begin = 0 if front is None else front.end()
    masked = mask_dialects(text, begin)
    lines = [match.span() for match in _LINE.finditer(text, begin) if match[0]]
    tokens, document.environment = document.parser.blocks(masked, begin)
    at, cell = 0, begin
    kept = _KeptText(text, [lines[first][0] for first in _definition_lines(document.environment) if first < len(lines)])
    previous = ["", ""]
    for token in tokens:
        if token.type != "inline" or not token.content:
            previous = [previous[1], token.type]
            continue
        first, last = token.map
        last = max(last, first + 1)
        is_heading = previous[1] == "heading_open"
        escape = _BLOCK_ESCAPES.get(previous[1], escape_paragraph)
        positions = _positions(token.content, masked, lines[first:last], cell)
        if positions is None:
            _warn_untranslated(text, lines[first][0])
            if is_heading:
                document.headings.append(token.content)
            continue
        is_first_of_item = previous == ["list_item_open", "paragraph_open"]
        found_heading = False
        for part in _split_block(Block(token.content, positions, escape), masked, is_first_of_item):
            if not part.content.strip():
                continue
            passage = build_passage(part, text, masked, document.parser, document.environment)
            if passage is None:
                _warn_untranslated(text, part.positions[0])
                continue
            document.parts += kept.between(at, part.positions[0])
            if is_heading:
                document.headings.append(len(document.parts))
                found_heading = True
            document.parts.append(passage)
            at = part.positions[-1]
        if is_heading and not found_heading:
            document.headings.append(text[positions[0] : positions[-1]])
        cell = positions[-1]
    document.parts += kept.between(at, len(text))
    _warn_other_documents(text)
    return ParsedDocument(document.parts, document.write)


def _warn_untranslated(text: str, position: int) -> None:
    line = text.count("\n", 0, position) + 1
    warn(f"line {line}: a block of Markdown remains untranslated, because its markup could not be located")


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


def _positions(content: str, masked: MaskedText, lines: list[tuple[int, int]], begin: int) -> list[int] | None:
    """Return the positions in the document of the characters of a block's text and of its end, or None if unknown.

    markdown-it-py returns the text without the prefixes of its lines, and with the pipes of table cells unescaped.
    """
    result: list[int] = []
    end = begin
    parts = content.split("\n")
    if len(parts) > len(lines):
        return None
    for part, (start, stop) in zip(parts, lines, strict=False):
        stripped = part.strip(" \t")
        found = _locate(stripped, masked.text, max(start, begin), stop)
        if found is None:
            return None
        if result:
            result.append(end)
        found_begin, found_end = found
        lead = len(part) - len(part.lstrip(" \t")) if stripped else 0
        raw = masked.text[found_begin:found_end]
        result += [found_begin] * lead + [found_begin + each for each in _in_table(stripped, raw)]
        tail = range(len(part) - lead - len(stripped))
        result += [min(found_end + each, stop) for each in tail]
        end = min(found_end + len(tail), stop)
    return [*result, end]


def _locate(content: str, text: str, begin: int, end: int) -> tuple[int, int] | None:
    """Return the range of a line's content in the document, where pipes may be escaped, or None."""
    if "|" not in content and "\ufffd" not in content:
        found = text.find(content, begin, end)
        return None if found < 0 else (found, found + len(content))
    pattern = re.escape(content).replace(r"\|", r"\\?\|").replace("\ufffd", "[\ufffd\0]")
    match = re.compile(pattern).search(text, begin, end)
    return None if match is None else match.span()


def _in_table(content: str, raw: str) -> list[int]:
    """Return the index in `raw` of each character of `content`. In `raw`, pipes of table cells may be escaped."""
    result, index = [], 0
    for character in content:
        result.append(index)
        index += 2 if character == "|" and raw[index : index + 2] == "\\|" else 1
    return result
