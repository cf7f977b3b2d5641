"""Labelled texts in JSON Lines: flat or nested objects, and the tasks of SuperGLUE."""

from collections.abc import Iterable, Iterator
from typing import Any

from dragoman.base.errors import DataError
from dragoman.data.files.jsonl import field_value, read_object
from dragoman.data.labelled.columns import Selection, explain_missing_label, select_by_name
from dragoman.data.labelled.corpus import ColumnsConfig, LabelledCorpusConfig
from dragoman.data.labelled.rows import Line, Row
from dragoman.data.labelled.superglue import task_of


class _Number(str):
    """A number as written in the file, so that labels such as 5.0 and 1e3 remain unchanged."""

    __slots__ = ()


def read_json_lines(lines: Iterable[Line], corpus: LabelledCorpusConfig, labelled: bool) -> Iterator[Row]:
    """Yield the examples of a file with one JSON object per line. Blank lines are skipped.

    A task of SuperGLUE whose objects are not one text or pair with a label is recognised by its keys (see
    `superglue.py`), unless the settings select the columns. labelled: whether a label is needed. Raises DataError with
    file and line if a line is not a JSON object, lacks a key, or has a value of the wrong type.
    """
    reader: _FlatReader | None = None
    for number, line in lines:
        if not line.strip():
            continue
        location = f"{corpus}, line {number}"
        entry = read_object(line, location, _Number)
        convert = task_of(entry) if corpus.columns == ColumnsConfig() else None
        if convert is not None:
            for texts, label, identifier in convert(entry, location):
                yield Row(number, texts, label, identifier)
            continue
        reader = reader or _FlatReader(entry, corpus, location, labelled)
        yield reader.read(entry, number, location)


class _FlatReader:
    """Reads the selected keys of objects. The keys are determined from the first object."""

    def __init__(self, first: dict[str, Any], corpus: LabelledCorpusConfig, location: str, labelled: bool) -> None:
        columns = corpus.columns
        for setting, column in columns.model_dump().items():
            if isinstance(column, int):
                raise DataError(f"{location}: `columns.{setting}` is a number, but jsonl has keys. Set it to a key.")
        keys = _paths(first)
        selection: Selection = select_by_name(keys, corpus, location)
        if labelled and selection.label is None:
            raise explain_missing_label(keys, corpus, location)
        self._texts = [keys[index] for index in selection.texts]
        self._label = keys[selection.label] if selection.label is not None else columns.label
        self._id = keys[selection.id] if selection.id is not None else None

    def read(self, entry: dict[str, Any], number: int, location: str) -> Row:
        texts = tuple(self._read_text(entry, key, location) for key in self._texts)
        label = self._read_scalar(entry, str(self._label), location) if self._label is not None else None
        identifier = self._read_scalar(entry, self._id, location) if self._id is not None else None
        return Row(number, texts, label, identifier)

    def _read_text(self, entry: dict[str, Any], key: str, location: str) -> str:
        value = field_value(entry, key, location, "`columns`")
        if not isinstance(value, str) or isinstance(value, _Number):
            raise DataError(f"{location}: the value of {key!r} is not a string, but {_type_name(value)}.")
        return value

    def _read_scalar(self, entry: dict[str, Any], key: str, location: str) -> str | None:
        """Return a label or an identifier as text. A missing key or null is None."""
        value: Any = entry.get(key, entry)
        if value is entry:
            for part in key.split("."):
                value = value.get(part) if isinstance(value, dict) else None
        if value is None or isinstance(value, str):
            return value if value is None else str(value)
        if isinstance(value, bool):
            return "true" if value else "false"
        remedy = " Several labels for one text are not supported: keep one." if isinstance(value, list) else ""
        raise DataError(
            f"{location}: the value of {key!r} is not a string, number or boolean: {_type_name(value)}.{remedy}"
        )


def _paths(entry: dict[str, Any], prefix: str = "") -> list[str]:
    """Return the paths of all values that are not objects, such as article.body, and the keys of objects."""
    paths = []
    for key, value in entry.items():
        paths.append(f"{prefix}{key}")
        if isinstance(value, dict):
            paths += _paths(value, f"{prefix}{key}.")
    return list(dict.fromkeys(paths))


def _type_name(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, _Number):
        return f"the number {value}"
    return {bool: "a boolean", list: "a list", dict: "an object"}.get(type(value), type(value).__name__)
