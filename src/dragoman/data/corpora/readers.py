"""Readers of the sentence pairs of corpora in any format, and checks that corpora can be read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from pathlib import Path

from dragoman.base.errors import DataError
from dragoman.base.log import warn
from dragoman.data.corpora.corpus import CorpusConfig, TextCorpusConfig
from dragoman.data.corpora.documents import read_passages
from dragoman.data.corpora.items import Pair
from dragoman.data.corpora.records import read_records
from dragoman.data.corpora.tmx import read_tmx
from dragoman.data.files.jsonl import read_fields
from dragoman.data.files.lines import has_broken_utf8, open_lines, read_chunks

_SAMPLE = 100
"""Number of lines of a table that are examined to determine whether it has more than two columns."""

_LONGEST_CELL = 40


def read_pairs(corpus: CorpusConfig) -> Iterator[Pair]:
    """Yield all pairs of a corpus in file order.

    Raises DataError if the two sides have different numbers of lines, if a line cannot be parsed as a pair, or if the
    corpus is empty.
    """
    number = 0
    for pair in _pairs(corpus):
        number = pair.line
        yield pair
    if number == 0:
        raise DataError(f"The corpus {corpus} is empty. Use files with at least one sentence pair.")


def read_sides(corpus: CorpusConfig) -> tuple[list[str], list[str]]:
    """Return all source and all target sentences, for evaluation. Units that lack a language are skipped.

    Raises DataError for invalid UTF-8 and if a whole side is blank.
    """
    sources: list[str] = []
    targets: list[str] = []
    incomplete = 0
    for pair in read_pairs(corpus):
        if not pair.complete:
            incomplete += 1
            continue
        if has_broken_utf8(pair.source) or has_broken_utf8(pair.target):
            raise DataError(f"{corpus}, line {pair.line}: broken UTF-8. Convert the file (for example with iconv).")
        sources.append(pair.source)
        targets.append(pair.target)
    if incomplete:
        warn(f"{corpus}: {incomplete:,} units lack one of the languages and are skipped.")
    for name, side in (("source", sources), ("target", targets)):
        if not any(map(str.strip, side)):
            raise DataError(f"{corpus}: every line of the {name} side is blank. Use files that contain sentences.")
    return sources, targets


@dataclass(frozen=True)
class HeldOutRecords:
    """The sources of a corpus with their references, for evaluation.

    references: one or more lists, each with one reference per source. A source with fewer references than others has
    its first one several times. sentences: the sentences of each source, if the corpus contains them as a list.
    contents: the texts of the fields of each source, without the words of the template.
    """

    sources: list[str]
    references: tuple[list[str], ...]
    sentences: list[tuple[str, ...]]
    contents: list[str]


def read_references(corpus: CorpusConfig) -> HeldOutRecords:
    """Return all sources and their references. Raises DataError as `read_sides` does."""
    if corpus.records is None:
        sources, targets = read_sides(corpus)
        return HeldOutRecords(sources, (targets,), [()] * len(sources), sources)
    records = list(read_records(corpus))
    if not records:
        raise DataError(f"The corpus {corpus} is empty. Use a file with at least one record.")
    for record in records:
        if any(map(has_broken_utf8, (record.source, *record.targets))):
            raise DataError(f"{corpus}, line {record.line}: broken UTF-8. Convert the file (for example with iconv).")
    count = max(len(record.targets) for record in records)
    padded = [(*record.targets, *[record.targets[0]] * (count - len(record.targets))) for record in records]
    references = tuple([targets[number] for targets in padded] for number in range(count))
    for name, side in (("source", [record.source for record in records]), ("target", references[0])):
        if not any(map(str.strip, side)):
            raise DataError(f"{corpus}: every {name} is blank. Check the template and the file.")
    contents = [each.content for each in records]
    return HeldOutRecords([each.source for each in records], references, [each.sentences for each in records], contents)


def check_readable(*corpora: CorpusConfig | TextCorpusConfig) -> None:
    """Check the first lines of each file. Raises DataError if a file is missing, empty or unreadable."""
    for corpus in corpora:
        _check_readable(corpus)


def _read_jsonl(path: Path, source_field: str, target_field: str) -> Iterator[Pair]:
    """Yield the pairs of a file. A blank line yields two empty sides. Raises DataError as `read_fields` does."""
    settings = "source_field and target_field of the corpus, such as data.train.source_field=KEY"
    for number, (source, target) in read_fields(path, (source_field, target_field), settings):
        yield Pair(number, source, target)


def _check_readable(corpus: CorpusConfig | TextCorpusConfig) -> None:
    for path in corpus.files:
        check_regular(path)
    if isinstance(corpus, TextCorpusConfig):
        next(read_passages(corpus))
        return
    for path in corpus.files:
        is_side = path in (corpus.source, corpus.target)
        if next(open_lines(path), None) is None if is_side else not any(read_chunks(path, "any")):
            raise DataError(f"{path} is empty. Use a file with at least one line.")
    if corpus.source is None:  # detect a wrong column, field, language or file format early
        next((pair for pair in _pairs(corpus) if pair.complete), None)


def check_regular(path: Path) -> None:
    """Raise DataError if a path exists but is not a regular file, because only regular files can be read repeatedly."""
    if path.exists() and not path.is_file():
        raise DataError(f"{path} is not a regular file. A corpus is read several times, so save it to a file first.")


def _pairs(corpus: CorpusConfig) -> Iterator[Pair]:
    if corpus.records is not None:
        return (
            Pair(record.line, record.source, target) for record in read_records(corpus) for target in record.targets
        )
    if corpus.jsonl is not None:
        return _read_jsonl(corpus.jsonl, corpus.source_field, corpus.target_field)
    if corpus.tmx is not None:
        return read_tmx(corpus.tmx, corpus.source_code or "", corpus.target_code or "")
    if corpus.tsv is not None:
        return _tsv_pairs(corpus, corpus.tsv)
    assert corpus.source is not None
    assert corpus.target is not None
    return _aligned_pairs(corpus.source, corpus.target)


def _aligned_pairs(source_file: Path, target_file: Path) -> Iterator[Pair]:
    counts = [0, 0]
    for source, target in zip_longest(open_lines(source_file), open_lines(target_file)):
        counts[0] += source is not None
        counts[1] += target is not None
        if source is not None and target is not None:
            yield Pair(counts[0], source, target)
    if counts[0] != counts[1]:
        for count, path in zip(counts, (source_file, target_file), strict=True):
            if count == 0:
                raise DataError(f"{path} is empty. Use a file with at least one line.")
        raise DataError(
            f"The two sides differ in length: {source_file} has {counts[0]} lines, "
            f"{target_file} has {counts[1]} lines. Line n of one must be the translation of line n of the other."
        )


def _tsv_pairs(corpus: CorpusConfig, path: Path) -> Iterator[Pair]:
    needed = max(corpus.source_column, corpus.target_column)
    lines = open_lines(path)
    sample = list(islice(lines, _SAMPLE))
    if not {"source_column", "target_column"} & corpus.model_fields_set:
        _check_two_columns(sample, path)
    for number, line in enumerate(chain(sample, lines), start=1):
        columns = line.split("\t")
        if line and len(columns) < needed:
            raise DataError(
                f"{path}, line {number}: {len(columns)} tab-separated columns, but column {needed} is needed. "
                "Fix the line or choose other columns."
            )
        if line:
            yield Pair(number, columns[corpus.source_column - 1], columns[corpus.target_column - 1])
        else:
            yield Pair(number, "", "")


def _check_two_columns(lines: Sequence[str], path: Path) -> None:
    """Raise DataError if most lines have more than two columns, because then the columns must be chosen."""
    rows = [(number, line.split("\t")) for number, line in enumerate(lines, start=1) if line]
    longer = [(number, cells) for number, cells in rows if len(cells) > 2]
    if 2 * len(longer) <= len(rows):
        return
    number, cells = longer[0]
    shown = ", ".join(f"{column} {_shorten(cell)!r}" for column, cell in enumerate(cells, start=1))
    raise DataError(
        f"{path}, line {number}: {len(cells)} tab-separated columns ({shown}). Choose two of them with the settings "
        "source_column and target_column of the corpus, such as data.train.source_column=2."
    )


def _shorten(cell: str) -> str:
    cell = cell.encode("utf-8", "replace").decode()
    return cell if len(cell) <= _LONGEST_CELL else f"{cell[: _LONGEST_CELL - 1]}…"
