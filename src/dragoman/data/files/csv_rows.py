"""Rows of comma-separated values with quotes (RFC 4180), also with other separators."""

import csv
from collections.abc import Iterable, Iterator

from dragoman.base.errors import DataError
from dragoman.data.files.lines import LONGEST_LINE


def csv_rows(lines: Iterable[str], separator: str, location: object, remedy: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each row, with the number of the line at which it starts. A blank line has one blank cell.

    location: name of the file. remedy: what else the user can do about a file that is not valid CSV; ends the message
    of the DataError that is raised for it.
    """
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=separator, strict=True)
    start = 1
    try:
        for cells in reader:
            yield start, cells or [""]
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{location}, line {start}: not valid CSV ({error}). Double the quotes inside quoted text, or {remedy}."
        ) from None
