"""Markdown (CommonMark, with tables) as a document: its blocks and marks stay as they are."""

import re
from collections.abc import Iterator

from dragoman.base.log import warn
from dragoman.documents.formats.markdown_inline import MarkdownParser, passage_of
from dragoman.documents.passage import Passage

_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n.*?\r?\n(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")


def parts_of_markdown(text: str) -> Iterator[str | Passage]:
    """A passage for each heading, paragraph and cell of a table. Warns of a block whose text is not found again."""
    parser = MarkdownParser()
    front = _FRONT_MATTER.match(text)
    begin = 0 if front is None else front.end()
    lines = [match.span() for match in _LINE.finditer(text, begin) if match[0]]
    tokens, environment = parser.blocks(text[begin:].replace("\0", "\ufffd"))
    at, cell = 0, begin
    for token in tokens:
        if token.type != "inline" or not token.content:
            continue
        first, last = token.map
        places = _places(token.content, text, lines[first:last], cell)
        passage = None if places is None else passage_of(token.content, text, places, parser, environment)
        if places is None or passage is None:
            line = text.count("\n", 0, lines[first][0]) + 1
            warn(f"line {line}: a block of Markdown whose marks could not be found again stays untranslated")
            continue
        yield text[at : places[0]]
        yield passage
        at = cell = places[-1]
    yield text[at:]


def _places(content: str, text: str, lines: list[tuple[int, int]], begin: int) -> list[int] | None:
    """Where each character of a block's text stands in the document, and where the last ends; None if unclear.

    The library gives the text without what stands before it in each line, and signs of tables without backslashes.
    """
    found: list[int] = []
    end = begin
    parts = content.split("\n")
    if len(parts) > len(lines):
        return None
    for part, (start, stop) in zip(parts, lines, strict=False):
        inked = part.strip(" \t")
        pattern = re.escape(inked).replace(r"\|", r"\\?\|").replace("\ufffd", "[\ufffd\0]")
        match = re.compile(pattern).search(text, max(start, begin), stop)
        if match is None:
            return None
        if found:
            found.append(end)
        lead = len(part) - len(part.lstrip(" \t")) if inked else 0
        found += [match.start()] * lead + [match.start() + each for each in _in_table(inked, match[0])]
        tail = range(len(part) - lead - len(inked))
        found += [min(match.end() + each, stop) for each in tail]
        end = min(match.end() + len(tail), stop)
    return [*found, end]


def _in_table(content: str, raw: str) -> list[int]:
    """Where each character stands in the same text with backslashes before signs of tables."""
    found, place = [], 0
    for character in content:
        found.append(place)
        place += 2 if character == "|" and raw[place : place + 2] == "\\|" else 1
    return found
