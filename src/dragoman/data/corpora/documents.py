"""Readers of the documents of plain-text corpora in any format."""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby
from pathlib import Path

from dragoman.base.errors import DataError
from dragoman.data.corpora.corpus import TextCorpusConfig
from dragoman.data.corpora.items import Passage
from dragoman.data.corpora.records import fill_objects
from dragoman.data.corpora.sentence_marks import remove_sentence_marks
from dragoman.data.corpora.templates import TemplateConfig
from dragoman.data.files.jsonl import read_fields
from dragoman.data.files.lines import has_broken_utf8, open_lines, read_text

_Numbered = tuple[int, str]

LONGEST = 1 << 16
"""Maximum number of characters of a passage."""

_BEFORE_WORD = re.compile(r".*\S(?= \S)", re.DOTALL)
_BEFORE_WHITESPACE = re.compile(r".*\S(?=[ \t\r\n])", re.DOTALL)


def read_passages(corpus: TextCorpusConfig) -> Iterator[Passage]:
    """Yield all documents of a corpus in file order, each as one or more passages, without marks such as `<s>`.

    Raises DataError if a line cannot be read or the corpus is empty.
    """
    passage = None
    for passage in _passages(corpus):
        text = remove_sentence_marks(passage.text)
        yield passage if text == passage.text else passage._replace(text=text)
    if passage is None:
        raise DataError(f"The corpus {corpus} is empty. Use a file that contains text.")


def read_texts(corpus: TextCorpusConfig) -> list[str]:
    """Return all documents, for evaluation. Raises DataError for invalid UTF-8 and if all documents are blank."""
    documents: list[str] = []
    parts: list[str] = []
    for passage in read_passages(corpus):
        if has_broken_utf8(passage.text):
            raise DataError(
                f"{corpus}, line {broken_line(passage)}: broken UTF-8. Convert the file (for example with iconv)."
            )
        parts.append(passage.text)
        if passage.ends:
            documents.append("".join(parts))
            parts.clear()
    if not any(map(str.strip, documents)):
        raise DataError(f"{corpus}: all documents are blank. Use a file that contains text.")
    return documents


def divide_into_passages(line: int, parts: Iterable[str]) -> Iterator[Passage]:
    """Divide a document into passages of at most LONGEST characters.

    line: line at which the document starts. parts: the text of the document in parts of any length, whose boundaries do
    not affect the result. A passage ends before the last space between two words, so that tokenizers split its words in
    the same way as in the whole document. If there is no such space, it ends before other whitespace. If there is no
    whitespace, it ends after LONGEST characters.
    """
    rest, begins = "", True
    for part in parts:
        rest += part
        position = 0
        while len(rest) - position > LONGEST:
            window = rest[position : position + LONGEST + 1]
            match = _BEFORE_WORD.match(window) or _BEFORE_WHITESPACE.match(window)
            text = window[: match.end() if match else LONGEST]
            yield Passage(line, text, begins, False)
            begins = False
            line += text.count("\n")
            position += len(text)
        rest = rest[position:]
    yield Passage(line, rest, begins)


def broken_line(passage: Passage) -> int:
    """Return the line of the first invalid UTF-8 of a passage. Raises ValueError if the UTF-8 is valid."""
    try:
        passage.text.encode("utf-8")
    except UnicodeEncodeError as error:
        return passage.line + passage.text.count("\n", 0, error.start)
    raise ValueError("the passage is not broken")


def _passages(corpus: TextCorpusConfig) -> Iterator[Passage]:
    if corpus.jsonl is not None and corpus.template is not None:
        return _read_records(corpus.jsonl, corpus.template)
    if corpus.jsonl is not None:
        return _read_objects(corpus.jsonl, corpus.field)
    assert corpus.text is not None
    if corpus.documents == "line":
        return _read_lines(corpus.text)
    if corpus.documents == "blank_line":
        return _read_paragraphs(corpus.text)
    if corpus.heading is not None:
        return _read_sections(corpus.text, re.compile(corpus.heading).fullmatch)
    return _read_file(corpus.text)


def _read_objects(path: Path, field: str) -> Iterator[Passage]:
    for number, (text,) in read_fields(path, [field], "field (--field)"):
        for passage in divide_into_passages(number, [text]):
            yield passage._replace(line=number)  # newlines inside a JSON string do not count


def _read_records(path: Path, templates: TemplateConfig) -> Iterator[Passage]:
    """Yield one document per object and target."""
    for record in fill_objects(path, templates):
        for target in record.targets:
            for passage in divide_into_passages(record.line, [record.source + target]):
                yield passage._replace(line=record.line)


def _read_lines(path: Path) -> Iterator[Passage]:
    for number, line in enumerate(open_lines(path), start=1):
        yield from divide_into_passages(number, [line])


def _read_paragraphs(path: Path) -> Iterator[Passage]:
    lines = enumerate(open_lines(path), start=1)
    for number, line in lines:
        if line.strip():
            yield from divide_into_passages(number, chain([line], _until_blank_line(lines)))


def _until_blank_line(lines: Iterator[_Numbered]) -> Iterator[str]:
    for _, line in lines:
        if not line.strip():
            return
        yield f"\n{line}"


def _read_sections(path: Path, is_heading: Callable[[str], object]) -> Iterator[Passage]:
    """Yield the documents of a file that is divided by headings.

    Blank lines at the start of the file belong to the first document. Any other lines before the first heading form a
    separate document.
    """
    count, has_text, after_blank = 0, False, True

    def document(numbered: _Numbered) -> int:
        nonlocal count, has_text, after_blank
        is_blank = not numbered[1].strip()
        if has_text and after_blank and is_heading(numbered[1]):
            count += 1
        has_text, after_blank = has_text or not is_blank, is_blank
        return count

    for _, lines in groupby(enumerate(open_lines(path), start=1), document):
        first = next(lines)
        yield from divide_into_passages(first[0], (f"{line}\n" for _, line in chain([first], lines)))


def _read_file(path: Path) -> Iterator[Passage]:
    pieces = filter(None, read_text(path))
    for first in pieces:
        yield from divide_into_passages(1, chain([first], pieces))
