"""Sentence pairs in tables: tab-separated values without quoting, also those with ` ||| ` for word aligners, and CSV
with quotes (RFC 4180)."""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, islice
from pathlib import Path

from dragoman.base.errors import DataError
from dragoman.base.log import info
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.items import Pair
from dragoman.data.corpora.pairs.columns import Columns, columns_by_name
from dragoman.data.files.csv_rows import csv_rows
from dragoman.data.files.lines import open_lines

_SAMPLE = 100
"""Number of lines at the start of a table from which its separator and its columns are determined."""

_MIN_REGULAR = 0.9
"""Minimum fraction of the lines of CSV that have the same number of columns."""

_LONGEST_CELL = 40
_ALIGNED = " ||| "
_CSV = {"\t": "tab-separated", ",": "comma-separated", ";": "semicolon-separated", "|": "bar-separated"}
_SEPARATORS = {**_CSV, _ALIGNED: "|||-separated"}
_Row = tuple[int, list[str]]


def read_table(path: Path, corpus: CorpusConfig) -> Iterator[Pair]:
    """Yield the pairs of a table. A blank line yields two empty sides; a header yields nothing and is reported.

    Raises DataError if the file has one column, if it has more than two and none are chosen, if a line lacks a chosen
    column, and for invalid CSV.
    """
    lines = open_lines(path)
    sample = list(islice(lines, _SAMPLE))
    separator, quoted = _separator(sample, corpus.format, is_whole=len(sample) < _SAMPLE)
    lines = chain(sample, lines)
    rows = csv_rows(lines, separator, path, "export the table again") if quoted else _tsv_rows(lines, separator)
    head = list(islice(rows, _SAMPLE))
    if not any(cells != [""] for _, cells in head):
        head += rows  # blank lines only, which are blank pairs
        yield from (Pair(number, "", "") for number, _ in head)
        return
    kind = _SEPARATORS[separator]
    (source, target, meanings), has_header = _select(head, corpus, path, kind)
    if has_header:
        _report_header(str(path), head[0][0], *meanings)
        head = head[1:]
    if has_header and not any(cells != [""] for _, cells in head):
        raise DataError(f"{path} contains only a header, and no pairs.")
    width = Counter(len(cells) for _, cells in head if cells != [""]).most_common(1)[0][0]
    for number, cells in chain(head, rows):
        if cells == [""]:
            yield Pair(number, "", "")
            continue
        if len(cells) <= max(source, target):
            raise DataError(
                f"{path}, line {number}: {_count(len(cells), kind)}, but column {max(source, target) + 1} is needed. "
                "Fix the line or choose other columns."
            )
        if quoted and len(cells) > width:
            raise DataError(
                f"{path}, line {number}: {_count(len(cells), kind)}, but other lines have {width}. Put a text that "
                "contains the separator between quotes."
            )
        yield Pair(number, cells[source], cells[target])


def _separator(lines: Sequence[str], file_format: str, is_whole: bool) -> tuple[str, bool]:
    """Return the separator of the columns, and whether quotes have a meaning. The separator of one column is a tab.

    is_whole: whether the lines are the whole file. Otherwise, the last record may be cut.
    """
    filled = [line for line in lines if line]
    if file_format == "tsv" or (file_format != "csv" and 2 * sum("\t" in line for line in filled) >= len(filled)):
        return "\t", False
    if file_format != "csv" and filled and all(line.count(_ALIGNED) == 1 for line in filled):
        return _ALIGNED, False
    best, best_score = "\t", (_MIN_REGULAR, 1)
    for separator in _CSV:
        rows = [cells for cells in _first_rows(lines, separator) if cells]
        rows = rows if is_whole or len(rows) < 2 else rows[:-1]
        counts = Counter(map(len, rows))
        if not counts or (file_format != "csv" and _is_prose(rows)):
            continue
        width, count = counts.most_common(1)[0]
        if width > 1 and (score := (count / len(rows), width)) >= best_score:
            best, best_score = separator, score
    return best, file_format == "csv" or best != "\t"


def _first_rows(lines: Sequence[str], separator: str) -> Iterator[list[str]]:
    """Yield the rows before the first one that is not valid CSV with this separator."""
    try:
        yield from csv.reader((f"{line}\n" for line in lines), delimiter=separator, strict=True)
    except csv.Error:
        return


def _is_prose(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether most cells but the first of a row start with a space, as after the commas of a sentence."""
    cells = [cell for row in rows for cell in row[1:]]
    return 2 * sum(cell.startswith(" ") for cell in cells) > len(cells)


def _tsv_rows(lines: Iterable[str], separator: str) -> Iterator[_Row]:
    for number, line in enumerate(lines, start=1):
        yield number, line.split(separator)


def _select(rows: Sequence[_Row], corpus: CorpusConfig, path: Path, kind: str) -> tuple[Columns, bool]:
    """Return the columns of the source and the target, and whether the first row is a header."""
    number, first = rows[0]
    location = f"{path}, line {number}"
    named = columns_by_name(first, corpus) if corpus.header is not False else None
    chosen = corpus.source_column, corpus.target_column
    by_name = any(isinstance(column, str) for column in chosen)
    has_header = by_name or (named is not None if corpus.header is None else corpus.header)
    if chosen != (None, None):
        source, target = (_position(column, first, location) for column in corpus.columns)
        return _columns(source, target, first), has_header
    if named is not None:
        return named, True
    filled = [(number, cells) for number, cells in rows if cells != [""]]
    longer = [(number, cells) for number, cells in filled if len(cells) > 2]
    if 2 * len(longer) > len(filled):
        number, cells = longer[0]
        shown = ", ".join(f"{column} {_shorten(cell)!r}" for column, cell in enumerate(cells, start=1))
        raise DataError(
            f"{path}, line {number}: {_count(len(cells), kind)} ({shown}). Choose two of them with the settings "
            f"source_column and target_column of the corpus, such as {corpus.address}.source_column=2."
        )
    if max(len(cells) for _, cells in filled) < 2:
        raise DataError(
            f"{path}, line {filled[0][0]}: only one column ({_shorten(filled[0][1][0])!r}). A file of pairs has the "
            "source and the target in each line, with a tab between them. Give two files with corresponding lines as "
            "source and target."
        )
    return _columns(0, 1, first), has_header


def _columns(source: int, target: int, names: Sequence[str]) -> Columns:
    """Return columns that are chosen by the settings or by their order, with the names in the first row."""
    padded = [*names, *("",) * (max(source, target) + 1)]
    return Columns(source, target, (padded[source].strip(), padded[target].strip()))


def _position(column: int | str, names: Sequence[str], location: str) -> int:
    if isinstance(column, int):
        return column - 1
    stripped = [name.strip() for name in names]
    if column not in stripped:
        shown = ", ".join(map(_shorten, stripped))
        raise DataError(
            f"{location}: there is no column {column!r}; the first line has {shown}. Set source_column and "
            "target_column of the corpus to two of these names, or to numbers."
        )
    return stripped.index(column)


@cache  # reports a file once, although it is read several times
def _report_header(path: str, line: int, source: str, target: str) -> None:
    info(f"{path}: line {line} is a header ({source}, {target}) and is not a pair.")


def _count(count: int, kind: str) -> str:
    return f"{count} {kind} column{'s' if count != 1 else ''}"


def _shorten(cell: str) -> str:
    cell = cell.encode("utf-8", "replace").decode()
    return cell if len(cell) <= _LONGEST_CELL else f"{cell[: _LONGEST_CELL - 1]}…"
