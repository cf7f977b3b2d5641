"""Readers of the sentence pairs of corpora in any format, and checks that corpora can be read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.log import info, warn
from dragoman.data.corpora.corpus import CorpusConfig, TextCorpusConfig
from dragoman.data.corpora.documents import read_passages
from dragoman.data.corpora.items import Pair
from dragoman.data.corpora.pairs.formats import read_pair_file
from dragoman.data.corpora.records import read_records
from dragoman.data.corpora.sentence_marks import remove_sentence_marks
from dragoman.data.files.lines import has_broken_utf8, open_lines, read_chunks


def read_pairs(corpus: CorpusConfig) -> Iterator[Pair]:
    """Yield all pairs of a corpus in file order, without marks of sentence boundaries such as `<s>`.

    Raises DataError if the two sides have different numbers of lines, if a line cannot be parsed as a pair, or if the
    corpus is empty.
    """
    number = 0
    for pair in _pairs(corpus):
        number = pair.line
        source, target = map(remove_sentence_marks, pair.texts)
        yield pair if (source, target) == pair.texts else pair._replace(source=source, target=target)
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


def read_pairs_instead(pairs: Path | str | CorpusConfig, others: Mapping[str, object]) -> tuple[list[str], list[str]]:
    """Return the sides of a file of pairs that is given instead of two files.

    others: the arguments that it replaces, by name. Raises ConfigError if one of them is also given, and the errors of
    `read_sides`.
    """
    if given := [name for name, value in others.items() if value]:
        raise ConfigError(
            f"the texts are either in one file (--pairs) or in two files, but {given[0]} is also given: remove one"
        )
    corpus = pairs if isinstance(pairs, CorpusConfig) else CorpusConfig(pairs=Path(pairs))
    return read_sides(corpus.at("pairs"))


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
    """Check the first lines of each file, and report marks of sentence boundaries that are removed from its lines.

    Raises DataError if a file is missing, empty or unreadable.
    """
    for corpus in corpora:
        _check_readable(corpus)
        for path in corpus.files:
            line = next(open_lines(path, "any", check_encoding=False), "")
            if remove_sentence_marks(line) != line:
                info(f"{path}: marks of sentence boundaries, such as <s> and </s>, are removed from all lines")


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
    """Raise DataError for a pipe or a device, because only regular files can be read repeatedly."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise DataError(f"{path} is not a regular file. A corpus is read several times, so save it to a file first.")


def _pairs(corpus: CorpusConfig) -> Iterator[Pair]:
    if corpus.records is not None:
        return (
            Pair(record.line, record.source, target) for record in read_records(corpus) for target in record.targets
        )
    if corpus.pairs is not None:
        return read_pair_file(corpus.pairs, corpus)
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
