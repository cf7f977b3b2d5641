"""Books in Markdown as plain text for pre-training: one paragraph per line."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from pydantic import Field

from dragoman.data.downloads.conversions.conversion import Conversion, Original, write_lines

_HEADING_OR_RULE = re.compile(r"#|[-=*_\s]+$")
_EMPHASIS = re.compile(r"(?<!\w)([*_]{1,3})(\S(?:.*?\S)?)\1(?!\w)")


class BooksConversion(Conversion):
    """Books, one paragraph per line and a blank line between books, without headings, rules and emphasis.

    Verses have one line each. `TITLES.tsv` lists the books with the numbers of their paragraphs and words.
    """

    kind: Literal["books"] = "books"
    parts: tuple[tuple[str, int], ...] = Field(description="Files with their numbers of books, in order.")

    def names(self) -> tuple[str, ...]:
        """Return the names of the texts and of the list of books."""
        return (*(f"{part}.txt.xz" for part, _ in self.parts), "TITLES.tsv")

    def convert(self, originals: Sequence[Original], folder: Path) -> None:
        """Write the texts and the list of books."""
        titles = ["file\tauthor/title\tparagraphs\twords"]
        rest = iter(originals)
        for part, count in self.parts:
            lines: list[str] = []
            for original in islice(rest, count):
                paragraphs = list(_paragraphs(original.read_text()))
                if not paragraphs:
                    raise original.changed("it has no text")
                author, title = unquote(original.address).removesuffix(".md").split("/")[-2:]
                words = sum(len(paragraph.split()) for paragraph in paragraphs)
                titles.append(f"{part}\t{author}/{title}\t{len(paragraphs)}\t{words}")
                lines += [*([""] if lines else []), *paragraphs]
            write_lines(lines, folder / f"{part}.txt.xz")
        write_lines(titles, folder / "TITLES.tsv")


def _paragraphs(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        stripped = line.strip()
        if stripped and not _HEADING_OR_RULE.match(stripped):
            yield _EMPHASIS.sub(r"\2", stripped)
