"""Treebanks: sentences with constituency trees in brackets, in one file or in the files that match a pattern."""

import fnmatch
import zipfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from dragoman.base.errors import DataError
from dragoman.base.log import warn
from dragoman.data.files.archives import archive_of
from dragoman.data.labelled.corpus import TreebankCorpusConfig
from dragoman.data.labelled.examples import ParsedSentence
from dragoman.data.labelled.rows import Line, read_lines
from dragoman.text.trees.brackets import read_trees

_WILDCARDS = "*?["


def read_treebank(corpus: TreebankCorpusConfig, labelled: bool) -> list[ParsedSentence]:
    """Return the sentences of a treebank in order, with reduced trees (`Tree.reduced`).

    Several trees side by side, such as a sentence and its full stop, are parts of a constituent TOP, because parsers
    predict one tree per sentence.
    Trees that consist of empty elements only are left out, which a warning reports. In sentences without trees, blank
    lines are sentences without words. labelled: whether trees are needed. Raises DataError with file and line if a
    tree cannot be read, or if trees are needed but the file contains none.
    """
    sentences: list[ParsedSentence] = []
    empty = 0
    for path in treebank_files(corpus.path):
        lines = read_lines(path, corpus.encoding)
        start = list(_until_text(lines))
        has_trees = corpus.format == "trees" or (corpus.format == "auto" and bool(start) and begins_tree(start[-1][1]))
        if not has_trees:
            if labelled:
                number, line = start[-1] if start else (1, "")
                raise DataError(
                    f"{path}, line {number}: expected a tree such as (S (NP (DT The) (NN end))), not {line.strip():.40}"
                )
            sentences += [ParsedSentence(tuple(line.split()), tag=corpus.tag or "") for _, line in chain(start, lines)]
            continue
        try:
            for _, tree in read_trees(chain(start, lines)):
                reduced = tree.reduced().rooted()
                empty += not reduced.words
                if reduced.words:
                    sentences.append(ParsedSentence(reduced.texts, reduced, corpus.tag or ""))
        except DataError as error:
            raise DataError(f"{path}, {error}. Correct the file.") from None
    if empty:
        warn(f"{corpus}: {empty:,} trees have no words except empty elements and are left out.")
    return sentences


def treebank_files(path: Path) -> list[Path]:
    """Return the files of a path whose file name may be a pattern, in alphabetical order.

    Raises DataError if no file matches the pattern.
    """
    if not any(wildcard in path.name for wildcard in _WILDCARDS) or path.exists():
        return [path]
    if (archive := archive_of(path)) is not None:
        pattern = path.relative_to(archive).as_posix()
        with zipfile.ZipFile(archive) as members:
            names = [name for name in members.namelist() if fnmatch.fnmatchcase(name, pattern)]
        files = [archive / name for name in sorted(names)]
    else:
        files = sorted(path.parent.glob(path.name))
    if not files:
        raise DataError(f"No file matches {path}. Correct the pattern.")
    return files


def _until_text(lines: Iterator[Line]) -> Iterator[Line]:
    """Yield lines up to the first one that is not blank."""
    for number, line in lines:
        yield number, line
        if line.strip():
            return


def begins_tree(line: str) -> bool:
    """Return whether a line opens a tree: a bracket, and no bracket that closes before a word."""
    text = line.split()
    return bool(text) and text[0].startswith("(") and (len(text) == 1 or text[0] != "(" or text[1].startswith("("))
