"""Selection of the columns of a table, or the keys of JSON objects: by the settings, or by well-known names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dragoman.base.errors import DataError
from dragoman.data.labelled.corpus import Column, LabelledCorpusConfig

PAIRS = (
    ("sentence1", "sentence2"),
    ("sentence_1", "sentence_2"),
    ("sentence_a", "sentence_b"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("question", "passage"),
    ("text1", "text2"),
    ("text_a", "text_b"),
    ("text", "pair"),  # held-out sets
    ("#1 string", "#2 string"),  # MRPC
)
TEXTS = ("sentence", "text", "review", "comment", "tweet", "question", "content", "document", "satz", "kommentar")
LABELS = ("gold_label", "label", "labels")
"""Names of labels in order of preference: SNLI and MNLI also contain the labels of single annotators."""

OTHER_LABELS = (
    *("score", "similarity", "relatedness_score", "entailment_judgment", "is_duplicate", "quality", "class"),
    *("category", "target", "rating", "stars", "sentiment", "intent", "topic", "klasse", "kategorie"),
)
IDS = ("id", "idx", "index", "pair_id", "pairid", "uid", "guid")
KNOWN = frozenset((*(name for pair in PAIRS for name in pair), *TEXTS, *LABELS, *OTHER_LABELS, *IDS))
"""All well-known names, in lower case."""


@dataclass(frozen=True)
class Selection:
    """The columns of an example, as indices counted from 0. texts: one column, or two."""

    texts: tuple[int, ...]
    label: int | None
    id: int | None


def has_header(first: Sequence[str], corpus: LabelledCorpusConfig) -> bool:
    """Return whether the first row of a table contains the names of the columns."""
    if corpus.header is not None:
        return corpus.header
    columns = corpus.columns
    if any(isinstance(column, str) for column in (columns.text, columns.pair, columns.label, columns.id)):
        return True
    return sum(_normalise(cell) in KNOWN for cell in first) >= 2


def select_by_name(names: Sequence[str], corpus: LabelledCorpusConfig, location: str) -> Selection:
    """Select the columns of a table with a header, or the keys of the first JSON object.

    names: the header or the keys. location: file and line, for messages. The label is None if it cannot be determined
    (see `explain_missing_label`). Raises DataError if another column does not exist, or if a selected name occurs
    twice.
    """
    columns = corpus.columns
    known: dict[str, int] = {}
    for index, name in enumerate(names):
        known.setdefault(_normalise(name), index)
    texts = _known_texts(known) if columns.text is None else (_find(columns.text, names, "text", location),)
    if columns.pair is not None:
        texts = (*texts[:1], _find(columns.pair, names, "pair", location))
    if not texts or (columns.pair is not None and len(texts) < 2):
        raise DataError(f"{location}: none of the columns is known to be a text. Set `columns.text`.{_listed(names)}")
    if columns.label is None:
        label = _known_label(known, texts)
    else:
        label = _find(columns.label, names, "label", location) if _exists(columns.label, names) else None
    if columns.id is None:
        identifier = next((known[name] for name in IDS if name in known), None)
    else:
        identifier = _find(columns.id, names, "id", location)
    return Selection(texts, label, identifier)


def explain_missing_label(names: Sequence[str], corpus: LabelledCorpusConfig, location: str) -> DataError:
    """Return the error for a file whose columns contain no label, or several candidates."""
    if corpus.columns.label is not None:
        return _missing(corpus.columns.label, names, "label", location)
    candidates = [name for name in names if _normalise(name) in OTHER_LABELS]
    if len(candidates) > 1:
        return DataError(
            f"{location}: {' and '.join(candidates)} may each be the label. Set `columns.label` to one of them."
        )
    return DataError(f"{location}: none of the columns is known to be the label. Set `columns.label`.{_listed(names)}")


def select_by_position(rows: Sequence[Sequence[str]], corpus: LabelledCorpusConfig, location: str) -> Selection:
    """Select the columns of a table without a header.

    rows: the first rows of the table, at least one. By convention, one column contains the text; two columns the text
    and the label; three columns a pair of texts and the label; and the four columns of CoLA the source, the label, the
    mark of the author and the sentence. Raises DataError for any other table, if the settings do not contain the column
    numbers.
    """
    columns, width = corpus.columns, len(rows[0])
    numbers: dict[str, int | None] = {
        name: _to_index(column, width, name, location)
        for name, column in (("text", columns.text), ("pair", columns.pair), ("label", columns.label))
    }
    text, pair, label = numbers["text"], numbers["pair"], numbers["label"]
    if text is None and pair is None:
        if is_cola(rows):
            text, label = 3, 1 if label is None else label
        elif label is not None and width == 2:
            text = 1 - label
        elif label is None and width <= 3:
            text, pair = 0, 1 if width == 3 else None
            label = width - 1 if width > 1 else None
    if text is None:
        raise DataError(
            f"{location}: the columns of a table with {width} columns and no header cannot be determined. Set "
            "`columns.text` and `columns.label` to column numbers, or `header: true` if this line contains their names."
        )
    texts = (text,) if pair is None else (text, pair)
    return Selection(texts, label, _to_index(columns.id, width, "id", location))


def is_cola(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether rows have the four columns of CoLA, the second of which is 0 or 1."""
    return all(len(row) == 4 and row[1] in ("0", "1") and len(row[2]) <= 3 < len(row[3]) for row in rows)


def _normalise(name: str) -> str:
    return name.strip().lower()


def _known_texts(known: Mapping[str, int]) -> tuple[int, ...]:
    for first, second in PAIRS:
        if first in known and second in known:
            return known[first], known[second]
    return next(((known[name],) for name in TEXTS if name in known), ())


def _known_label(known: Mapping[str, int], texts: tuple[int, ...]) -> int | None:
    for name in LABELS:
        if name in known:
            return known[name]
    others = [known[name] for name in OTHER_LABELS if name in known and known[name] not in texts]
    return others[0] if len(others) == 1 else None


def _exists(column: Column, names: Sequence[str]) -> bool:
    return column in names if isinstance(column, str) else column <= len(names)


def _find(column: Column, names: Sequence[str], setting: str, location: str) -> int:
    if not _exists(column, names):
        raise _missing(column, names, setting, location)
    if isinstance(column, int):
        return column - 1
    if names.count(column) > 1:
        raise DataError(
            f"{location}: there are several columns {column!r}. Set `columns.{setting}` to the number of one of them."
        )
    return names.index(column)


def _to_index(column: Column | None, width: int, setting: str, location: str) -> int | None:
    if column is None:
        return None
    assert isinstance(column, int)
    if column > width:
        raise DataError(f"{location}: there are {width} columns, but `columns.{setting}` is {column}.")
    return column - 1


def _missing(column: Column, names: Sequence[str], setting: str, location: str) -> DataError:
    return DataError(
        f"{location}: there is no column {column!r}. Set `columns.{setting}` to one of the columns.{_listed(names)}"
    )


def _listed(names: Sequence[str]) -> str:
    return f" The columns are {', '.join(repr(name) for name in names)}."
