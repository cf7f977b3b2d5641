"""Tagged sentences in JSON Lines, as Hugging Face's datasets write them."""

import json
from collections.abc import Iterator, Sequence

from dragoman.base.errors import DataError
from dragoman.data.files.jsonl import read_object
from dragoman.data.labelled.corpus import TaggedCorpusConfig
from dragoman.data.labelled.examples import TaggedSentence
from dragoman.data.labelled.rows import Line

_WORDS = ("tokens", "words")
_TAGS = ("ner_tags", "tags", "labels", "pos_tags", "upos")


def is_json(lines: Sequence[Line]) -> bool:
    """Return whether the first line that is not blank begins an object or a list of JSON, and not a row of columns."""
    first = next((line.strip() for _, line in lines if line.strip()), "")
    if first in ("{", "["):
        return len(lines) > 1 and lines[1][1].lstrip()[:1] in ("{", "[", '"')
    try:
        return isinstance(json.loads(first), dict | list)
    except (ValueError, RecursionError):
        return first[:2] in ('{"', "[[", "[{", '["')


def read_tagged_json(
    lines: Sequence[Line], corpus: TaggedCorpusConfig, labelled: bool
) -> Iterator[tuple[int, TaggedSentence]]:
    """Yield the sentences of a file with one object per line, which has a list of words and a list of tags.

    labelled: whether tags are needed. Raises DataError with file and line for any other JSON.
    """
    for number, line in lines:
        if not line.strip():
            continue
        location = f"{corpus}, line {number}"
        if line.lstrip()[:1] != "{":
            raise DataError(
                f"{location}: this is JSON, and taggers read one word and its tag per line (CoNLL), or one object with "
                '"tokens" and "ner_tags" per line. Convert the file.'
            )
        entry = read_object(line, location)
        words = _texts(entry, _WORDS, location)
        tags = _texts(entry, _TAGS, location) if labelled or any(key in entry for key in _TAGS) else None
        if tags is not None and len(tags) != len(words):
            raise DataError(f"{location}: there are {len(words)} words, but {len(tags)} tags. Fix the line.")
        if words:
            yield number, TaggedSentence(words, tags)


def _texts(entry: dict[str, object], keys: Sequence[str], location: str) -> tuple[str, ...]:
    """Return the list of the first key that exists."""
    key = next((key for key in keys if key in entry), None)
    if key is None:
        raise DataError(f"{location}: the object has none of the keys {', '.join(keys)}. Rename its keys.")
    values = entry[key]
    if not isinstance(values, list):
        raise DataError(f"{location}: {key!r} is not a list. Taggers need one word and one tag per position.")
    if any(isinstance(value, int) for value in values):
        raise DataError(
            f"{location}: {key!r} contains numbers. Replace them by the names of the tags, which are in the features "
            "of the dataset."
        )
    if not all(isinstance(value, str) and value for value in values):
        raise DataError(f"{location}: {key!r} contains something else than words. Fix the line.")
    return tuple(map(str, values))
