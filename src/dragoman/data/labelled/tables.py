"""Labelled texts in tables: tab-separated values without quoting, as in GLUE, and CSV with quotes (RFC 4180)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from dragoman.base.errors import DataError
from dragoman.base.log import warn
from dragoman.data.files.csv_rows import csv_rows
from dragoman.data.labelled.columns import (
    Selection,
    explain_missing_label,
    has_header,
    select_by_name,
    select_by_position,
)
from dragoman.data.labelled.corpus import ColumnsConfig, LabelledCorpusConfig
from dragoman.data.labelled.rows import Line, Row

_SAMPLE = 20
"""Number of rows that are examined to determine the columns of a table without a header."""

_SEPARATORS = {"\t": "tab", ";": "semicolon", "|": "vertical bar", ",": "comma"}
_Record = tuple[int, list[str]]


def read_table(lines: Iterable[Line], corpus: LabelledCorpusConfig, kind: str, labelled: bool) -> Iterator[Row]:
    """Yield the rows of a table. A blank line is a blank text in a table with one column, and an error in others.

    kind: tsv or csv. labelled: whether a label is needed. Raises DataError with file and line if the columns cannot be
    determined or if a row has the wrong number of columns.
    """
    separator = corpus.separator or ("," if kind == "csv" else "\t")
    if kind == "csv":
        remedy = "set `format: tsv` if quotes have no special meaning in this file"
        records = list(csv_rows((line for _, line in lines), separator, corpus, remedy))
    else:
        records = [(number, line.split(separator)) for number, line in lines]
    while records and records[-1][1] == [""] and len(records[0][1]) > 1:
        records.pop()  # blank lines at the end of the file
    if not records:
        return
    number, first = records[0]
    location = f"{corpus}, line {number}"
    if labelled or corpus.columns != ColumnsConfig():
        _check_separator(first, separator, corpus, location)
    with_header = has_header(first, corpus)
    if with_header:
        selection = select_by_name(first, corpus, location)
        if labelled and selection.label is None:
            raise explain_missing_label(first, corpus, location)
    else:
        selection = select_by_position([cells for _, cells in records[:_SAMPLE]], corpus, location)
        if labelled and selection.label is None:
            reason = "there is only one column" if len(first) == 1 else "the table has no header"
            raise DataError(f"{location}: the label cannot be determined, because {reason}. Set `columns.label`.")
    rows = records[1:] if with_header else records
    _check_widths(rows, len(first), selection, corpus)
    if not with_header and corpus.header is None and selection.label is not None:
        _warn_of_header([cells[selection.label] for _, cells in rows], corpus, location)
    for number, cells in rows:
        yield Row(
            number,
            tuple(cells[text] for text in selection.texts),
            None if selection.label is None else cells[selection.label],
            None if selection.id is None else cells[selection.id],
        )


def _check_separator(first: Sequence[str], separator: str, corpus: LabelledCorpusConfig, location: str) -> None:
    """Raise DataError if the first line has one column and contains a character that may separate columns."""
    if len(first) > 1 or corpus.separator is not None:
        return
    for other, name in _SEPARATORS.items():
        if other in first[0]:
            raise DataError(
                f"{location}: there is only one column, but more are needed. Is the separator a {name}? Then set "
                "`separator`."
            )


def _check_widths(rows: Sequence[_Record], width: int, selection: Selection, corpus: LabelledCorpusConfig) -> None:
    """Raise DataError if a row is too short or too long.

    Additional columns are allowed, with a warning, if the settings select the columns by number.
    """
    columns = corpus.columns
    by_number = isinstance(columns.text, int) and not isinstance(columns.label, str)
    longer = [number for number, cells in rows if len(cells) > width]
    needed = max(index for index in (*selection.texts, selection.label, selection.id) if index is not None) + 1
    for number, cells in rows:
        if len(cells) < needed or (len(cells) < width and not by_number) or (len(cells) > width and not by_number):
            blank = " The line is blank." if cells == [""] else ""
            raise DataError(
                f"{corpus}, line {number}: the number of columns is {len(cells)}, but should be {width}.{blank} Fix "
                "the line, or select the columns by number if lines may differ."
            )
    if longer:
        warn(f"{corpus}: {len(longer):,} lines have more than {width} columns (the first is line {longer[0]}).")


def _warn_of_header(labels: Sequence[str], corpus: LabelledCorpusConfig, location: str) -> None:
    """Warn if the first label differs from all others in a way that is typical of the name of a column."""
    if len(labels) < 4:
        return
    counts = Counter(labels)
    is_only_word = not _is_number(labels[0]) and all(map(_is_number, labels[1:]))
    is_unique = counts[labels[0]] == 1 and all(count > 1 for label, count in counts.items() if label != labels[0])
    if is_only_word or is_unique:
        warn(
            f"{location} looks like the names of the columns, because its label {labels[0]!r} occurs only once. It is "
            "read as an example. Set `header` to true or false."
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
