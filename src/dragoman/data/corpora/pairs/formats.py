"""Reading of a file of sentence pairs in any format, which is recognised by its contents."""

from collections.abc import Iterator
from pathlib import Path

from dragoman.base.errors import DataError
from dragoman.data.corpora.corpus import CorpusConfig, PairFormat
from dragoman.data.corpora.items import Pair
from dragoman.data.corpora.pairs.columns import columns_by_name
from dragoman.data.corpora.pairs.gettext import read_gettext
from dragoman.data.corpora.pairs.tables import read_table
from dragoman.data.corpora.pairs.tmx import read_tmx
from dragoman.data.corpora.pairs.xliff import read_xliff
from dragoman.data.files.jsonl import field_names, field_text, read_objects
from dragoman.data.files.lines import CHUNK, gather, read_utf8
from dragoman.data.files.recognition import recognise_pairs


def read_pair_file(path: Path, corpus: CorpusConfig) -> Iterator[Pair]:
    """Yield the pairs of a file, with the settings of its corpus. Raises the errors of the reader of its format."""
    file_format = format_of(path) if corpus.format == "auto" else corpus.format
    match file_format:
        case "jsonl":
            return _read_jsonl(path, corpus)
        case "tmx":
            return read_tmx(path, corpus.source_code, corpus.target_code, corpus.address)
        case "xliff":
            return read_xliff(path, corpus.source_code, corpus.target_code, corpus.address)
        case "po":
            return read_gettext(path)
        case _:
            return read_table(path, corpus)


def format_of(path: Path) -> PairFormat | None:
    """Return the format of a file; None for a table, whose separator is determined from more lines.

    Raises DataError if the file is empty, cannot be read, or is evidently no corpus, such as a PDF.
    """
    head = gather(read_utf8(path, "any", check_encoding=False), CHUNK)
    if not head:
        raise DataError(f"{path} is empty. Use a file with at least one line.")
    return recognise_pairs(head[:CHUNK])


def _read_jsonl(path: Path, corpus: CorpusConfig) -> Iterator[Pair]:
    """Yield the pairs of JSON Lines or of a JSON array. A blank line yields two empty sides.

    The keys are the chosen ones, or those of the first object that name a source and a target, or two languages.
    Raises DataError with file and line if a line is not a JSON object, or lacks one of the keys.
    """
    settings = f"source_column and target_column of the corpus, such as {corpus.address}.source_column=KEY"
    source, target = corpus.source_column, corpus.target_column
    if isinstance(source, int) or isinstance(target, int):
        raise DataError(f"{path} has keys and no numbered columns. Set {settings}.")
    keys: tuple[str, str] | None = None
    for number, entry in read_objects(path):
        if entry is None:
            yield Pair(number, "", "")
            continue
        location = f"{path}, line {number}"
        if keys is None:
            names = list(field_names(entry))
            named = columns_by_name(names, corpus) if source is None or target is None else None
            found = ("source", "target") if named is None else (names[named.source], names[named.target])
            keys = source or found[0], target or found[1]
        one, other = (field_text(entry, key, location, settings) for key in keys)
        yield Pair(number, one, other)
