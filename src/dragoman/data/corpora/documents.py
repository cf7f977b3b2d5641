"""Reading the documents of a plain-text corpus in any format."""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby
from pathlib import Path

from dragoman.base.errors import DataError
from dragoman.data.corpora.corpus import TextCorpusConfig
from dragoman.data.corpora.items import Passage
from dragoman.data.corpora.jsonl import read_fields
from dragoman.data.corpora.lines import has_broken_utf8, open_lines, read_text

_Numbered = tuple[int, str]

LONGEST = 1 << 16
"""Maximum number of characters of a passage."""

_BEFORE_BLANK = re.compile(r".*\S(?= \S)", re.DOTALL)
_BEFORE_SPACE = re.compile(r".*\S(?=[ \t\r\n])", re.DOTALL)


def read_passages(corpus: TextCorpusConfig) -> Iterator[Passage]:
    """Yield the documents of a corpus in file order, without dropping any, each as one or more passages.

    Raises DataError if a line cannot be read or the corpus is empty.
    """
    passage = None
    for passage in _passages(corpus):
        yield passage
    if passage is None:
        raise DataError(f"The corpus {corpus} is empty; give a file with text in it.")


def read_texts(corpus: TextCorpusConfig) -> list[str]:
    """Return all documents, for evaluation. Raises DataError for invalid UTF-8 and if all documents are blank."""
    documents: list[str] = []
    parts: list[str] = []
    for passage in read_passages(corpus):
        if has_broken_utf8(passage.text):
            raise DataError(
                f"{corpus}, line {broken_line(passage)}: broken UTF-8; convert the file (for example with iconv)."
            )
        parts.append(passage.text)
        if passage.ends:
            documents.append("".join(parts))
            parts.clear()
    if not any(map(str.strip, documents)):
        raise DataError(f"{corpus}: all documents are blank; give a file with text in it.")
    return documents


def in_passages(line: int, parts: Iterable[str]) -> Iterator[Passage]:
    """Divide a document into passages of at most LONGEST characters.

    line: line where the document starts. parts: its text in parts of any length, whose boundaries do not affect the
    result. A passage ends before the last space between two words, so that tokenizers split its words as in the whole
    document; if there is no such space, before other whitespace; if there is no whitespace, anywhere.
    """
    rest, begins = "", True
    for part in parts:
        rest += part
        place = 0
        while len(rest) - place > LONGEST:
            window = rest[place : place + LONGEST + 1]
            found = _BEFORE_BLANK.match(window) or _BEFORE_SPACE.match(window)
            text = window[: found.end() if found else LONGEST]
            yield Passage(line, text, begins, False)
            begins = False
            line += text.count("\n")
            place += len(text)
        rest = rest[place:]
    yield Passage(line, rest, begins)


def broken_line(passage: Passage) -> int:
    """Return the line of the first invalid UTF-8 in a passage that has any."""
    try:
        passage.text.encode("utf-8")
    except UnicodeEncodeError as error:
        return passage.line + passage.text.count("\n", 0, error.start)
    raise ValueError("the passage is not broken")


def _passages(corpus: TextCorpusConfig) -> Iterator[Passage]:
    if corpus.jsonl is not None:
        return _of_objects(corpus.jsonl, corpus.field)
    assert corpus.text is not None
    if corpus.documents == "line":
        return _lines(corpus.text)
    if corpus.documents == "blank_line":
        return _paragraphs(corpus.text)
    if corpus.heading is not None:
        return _under_headings(corpus.text, re.compile(corpus.heading).fullmatch)
    return _whole(corpus.text)


def _of_objects(path: Path, field: str) -> Iterator[Passage]:
    for number, (text,) in read_fields(path, [field], "field"):
        for passage in in_passages(number, [text]):
            yield passage._replace(line=number)  # newlines inside a JSON string do not count


def _lines(path: Path) -> Iterator[Passage]:
    for number, line in enumerate(open_lines(path), start=1):
        yield from in_passages(number, [line])


def _paragraphs(path: Path) -> Iterator[Passage]:
    lines = enumerate(open_lines(path), start=1)
    for number, line in lines:
        if line.strip():
            yield from in_passages(number, chain([line], _to_blank(lines)))


def _to_blank(lines: Iterator[_Numbered]) -> Iterator[str]:
    for _, line in lines:
        if not line.strip():
            return
        yield f"\n{line}"


def _under_headings(path: Path, is_heading: Callable[[str], object]) -> Iterator[Passage]:
    """Yield the documents of a file divided by headings. Blank lines before the first heading belong to its document;
    other lines there form a document of their own.
    """
    count, begun, after_blank = 0, False, True

    def document(numbered: _Numbered) -> int:
        nonlocal count, begun, after_blank
        blank = not numbered[1].strip()
        if begun and after_blank and is_heading(numbered[1]):
            count += 1
        begun, after_blank = begun or not blank, blank
        return count

    for _, lines in groupby(enumerate(open_lines(path), start=1), document):
        first = next(lines)
        yield from in_passages(first[0], (f"{line}\n" for _, line in chain([first], lines)))


def _whole(path: Path) -> Iterator[Passage]:
    pieces = filter(None, read_text(path))
    for first in pieces:
        yield from in_passages(1, chain([first], pieces))
