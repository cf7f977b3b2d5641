"""Labels in files without their texts: as programs write predictions, one per line, in a table or in JSON Lines."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from dragoman.base.errors import DataError
from dragoman.data.files.csv_rows import csv_rows
from dragoman.data.files.jsonl import read_object
from dragoman.data.labelled.columns import IDS, KNOWN, LABELS, OTHER_LABELS
from dragoman.data.labelled.corpus import Encoding
from dragoman.data.labelled.examples import LabelledText
from dragoman.data.labelled.rows import Line, check_unicode, read_lines

PREDICTIONS = ("prediction", "predictions", "predicted", "predicted_label", "pred", "y_pred", "value")
"""Names of predicted labels, which precede the names of correct ones."""

_NAMES = (*PREDICTIONS, *LABELS, *OTHER_LABELS)
_IDS = (*IDS, "")  # the index of a pandas table has no name


def read_label_file(path: Path, encoding: Encoding = "utf-8") -> list[LabelledText]:
    """Return the labels of a file, without texts, and with the identifier and the line of each.

    The file has one label per line; tab-separated columns, or columns of a file named .csv, of which the last one is
    the label unless a header names it; or one JSON object per line. Raises DataError with file and line if a label is
    missing.
    """
    lines = list(read_lines(path, encoding))
    while lines and not lines[-1][1].strip():
        lines.pop()
    if not lines:
        raise DataError(f"{path} has no labels. Use a file with one label per line.")
    rows = _json_rows(lines, path) if lines[0][1].lstrip().startswith("{") else _table_rows(lines, path)
    found = []
    for number, label, identifier in rows:
        location = f"{path}, line {number}"
        if not label.strip():
            raise DataError(f"{location}: the label is missing. Write one label for each example.")
        found.append(LabelledText((), check_unicode(label, location), identifier, str(path), number))
    return found


def has_only_labels(names: Sequence[str]) -> bool:
    """Return whether all columns or keys of a file have names of labels and identifiers, or of probabilities."""
    known = {*_NAMES, *_IDS, "probabilities"}
    return any(name.lower() in _NAMES for name in names) and all(name.lower() in known for name in names)


def _json_rows(lines: Sequence[Line], path: Path) -> Iterator[tuple[int, str, str | None]]:
    for number, line in lines:
        location = f"{path}, line {number}"
        entry = {key.lower(): value for key, value in read_object(line, location, str).items()}
        name = next((name for name in _NAMES if name in entry), None)
        if name is None:
            raise DataError(f"{location}: none of the keys {', '.join(entry)} is known to be a label. Name it label.")
        label = entry[name]
        if isinstance(label, bool):
            label = str(label).lower()
        if not isinstance(label, str):
            raise DataError(f"{location}: the value of {name!r} is not a single label. Write a text or a number.")
        identifier = next((entry[key] for key in IDS if key in entry), None)
        yield number, label, None if identifier is None else str(identifier)


def _table_rows(lines: Sequence[Line], path: Path) -> Iterator[tuple[int, str, str | None]]:
    is_csv = ".csv" in path.suffixes
    if is_csv:
        rows = list(csv_rows((line for _, line in lines), ",", path, "name the file .txt if each line is a label"))
    else:
        rows = [(number, line.split("\t")) for number, line in lines]
    names = [cell.strip().lower() for cell in rows[0][1]]
    is_table = is_csv or ".tsv" in path.suffixes or len(names) > 1
    column, identifier = len(names) - 1, None
    if is_table and (any(name in _NAMES for name in names) or sum(name in KNOWN for name in names) > 1):
        rows = rows[1:]
        column = next((names.index(name) for name in _NAMES if name in names), -1)
        identifier = next((names.index(name) for name in _IDS if name in names), None)
        if column < 0:
            raise DataError(
                f"{path}, line 1: none of the columns {', '.join(names)} is known to be a label. Name one label."
            )
    for number, cells in rows:
        if len(cells) != len(names):
            raise DataError(
                f"{path}, line {number}: the number of columns is {len(cells)}, but should be {len(names)}."
            )
        yield number, cells[column], None if identifier is None else cells[identifier]
