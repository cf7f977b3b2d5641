"""`Block`: the text of a Markdown block with its positions in the document; `Source`: the document."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.addons.documents.formats.markdown.dialects import MaskedText
from dragoman.addons.documents.formats.markdown.parser import MarkdownParser
from dragoman.addons.documents.languages import Languages
from dragoman.addons.documents.passage import Escape


@dataclass(frozen=True)
class Source:
    """A document. text: its text; masked: the text for the parser; environment: the link definitions.

    languages: the languages of the document and of its translation.
    """

    text: str
    masked: MaskedText
    parser: MarkdownParser
    environment: Any
    languages: Languages


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


def block_positions(content: str, masked: MaskedText, lines: list[tuple[int, int]], begin: int) -> list[int] | None:
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
