"""Tagged sentences in the column formats of the CoNLL tasks and of Universal Dependencies (CoNLL-U)."""

import re
from collections.abc import Iterator, Sequence

from dragoman.base.errors import DataError
from dragoman.data.labelled.corpus import TaggedCorpusConfig
from dragoman.data.labelled.examples import TaggedSentence
from dragoman.data.labelled.rows import Line, read_lines
from dragoman.data.labelled.tagged_json import is_json, read_tagged_json

DOCUMENT_START = "-DOCSTART-"
"""Word that marks the start of a document, as in CoNLL-2003. It is not part of a sentence."""

_SENTENCE_ID = re.compile(r"#\s*sent_id\s*=\s*(\S.*)")
_SAMPLE = 100
_JOINED_TAGS = re.compile(r"\s*(?:[^\s/|]\S*[/|_][A-Z][A-Z0-9$-]*\s+)+[^\s/|]\S*[/|_][A-Z][A-Z0-9$-]*\s*")
"""A line such as `Ada/B-PER sleeps/O`."""

_Cells = list[str]


def read_conll(corpus: TaggedCorpusConfig, labelled: bool) -> Iterator[tuple[int, TaggedSentence]]:
    """Yield the sentences of a file, each with the line of its first word.

    The columns are separated by tabs if the first word line contains a tab, otherwise by blanks (U+0020), so that a
    no-break space can be a word. Blank lines separate sentences. Lines that begin with -DOCSTART- and comment lines are
    skipped. A file of JSON Lines is recognised by its contents. labelled: whether tags are needed. Raises DataError
    with file and line if a line has the wrong number of columns or an empty word or tag, or if the file has no column
    of tags.
    """
    lines = list(read_lines(corpus.path, corpus.encoding))
    if corpus.format == "auto" and is_json(lines):
        yield from read_tagged_json(lines, corpus, labelled)
        return
    _check_columns(lines, corpus)
    layout = _Layout(lines, corpus, labelled)
    sentence: list[tuple[int, _Cells]] = []
    identifier: str | None = None
    for number, line in lines:
        if _is_blank(line) or line.startswith(DOCUMENT_START):
            if sentence:
                yield sentence[0][0], layout.build(sentence, identifier)
                sentence, identifier = [], None
        elif layout.is_comment(line):
            match = _SENTENCE_ID.fullmatch(line)
            identifier = match[1] if match else identifier
        elif (cells := layout.parse(number, line)) is not None:
            sentence.append((number, cells))
    if sentence:
        yield sentence[0][0], layout.build(sentence, identifier)


def count_columns(corpus: TaggedCorpusConfig) -> int:
    """Return the number of columns of a file; 0 for JSON Lines."""
    lines = list(read_lines(corpus.path, corpus.encoding))
    return 0 if corpus.format == "auto" and is_json(lines) else _Layout(lines, corpus, False).width


def _check_columns(lines: Sequence[Line], corpus: TaggedCorpusConfig) -> None:
    """Raise DataError for tables that are separated by commas, and for sentences with tags joined to their words."""
    sample = [(number, line) for number, line in lines[:_SAMPLE] if not _is_blank(line)]
    if corpus.format != "auto" or not sample or any("\t" in line for _, line in sample):
        return
    (_, first), (_, second) = sample[0], sample[min(1, len(sample) - 1)]
    is_table = " " not in second and first.count(",") == second.count(",") > 1
    if ".csv" in corpus.path.suffixes or is_table:
        raise DataError(
            f"{corpus}, line {sample[0][0]}: this is CSV, and taggers read one word and its tag per line, with a tab "
            "or a blank between them, and a blank line after each sentence (CoNLL). Convert the file."
        )
    if all(_JOINED_TAGS.fullmatch(line) for _, line in sample):
        raise DataError(
            f"{corpus}, line {sample[0][0]}: this is a sentence with a tag joined to each word, and taggers read one "
            "word and its tag per line, with a blank line after each sentence (CoNLL). Convert the file."
        )


class _Layout:
    """The columns of a file, determined from its first word line."""

    def __init__(self, lines: Sequence[Line], corpus: TaggedCorpusConfig, labelled: bool) -> None:
        self._corpus = corpus
        self._is_conllu = corpus.format == "conllu" or (corpus.format == "auto" and ".conllu" in corpus.path.suffixes)
        skipped = (DOCUMENT_START, corpus.comment) if corpus.comment else (DOCUMENT_START,)
        content = [entry for entry in lines if not _is_blank(entry[1]) and not entry[1].startswith(skipped)]
        number, first = next((entry for entry in content if not entry[1].startswith("#")), (content or [(1, "")])[0])
        self._by_tabs = self._is_conllu or "\t" in first
        self.width = len(self._split(first))
        location = f"{corpus}, line {number}"
        self._word = (corpus.word or (2 if self._is_conllu else 1)) - 1
        self._tag = self._find_tag(labelled, location) if content else None
        if self._tag == self._word:
            raise DataError(f"{location}: column {self._word + 1} is both `word` and `tag`. Set one of them.")
        self._features = [column - 1 for column in corpus.features]
        if twice := [column for column in self._features if column in (self._word, self._tag)]:
            raise DataError(
                f"{location}: column {twice[0] + 1} is one of `features`, but also the word or the tag. Columns are "
                "counted from 1."
            )
        for setting, index in (("word", self._word), ("tag", self._tag), *(("features", x) for x in self._features)):
            if content and index is not None and index >= self.width:
                raise DataError(
                    f"{location}: there are {self.width} columns, but `{setting}` is {index + 1}. Set `{setting}` to "
                    "another column."
                )

    def _find_tag(self, labelled: bool, location: str) -> int | None:
        tag = self._corpus.tag or (4 if self._is_conllu else "last")
        if tag == "none":
            if labelled:
                raise DataError(f"{location}: gold tags are needed, but `tag` is none. Set `tag` to their column.")
            return None
        if tag != "last":
            return tag - 1
        if self.width == 1:
            if labelled:
                raise DataError(f"{location}: there is only one column, so there are no tags. Add a column of tags.")
            return None
        return self.width - 1

    def is_comment(self, line: str) -> bool:
        """Return whether a line is a comment."""
        if self._corpus.comment is not None:
            return line.startswith(self._corpus.comment)
        return line.startswith("#") and (self._is_conllu or len(self._split(line)) != self.width)

    def parse(self, number: int, line: str) -> _Cells | None:
        """Return the cells of a line; None for a multiword token or an empty node of CoNLL-U."""
        cells = self._split(line)
        if len(cells) != self.width:
            raise DataError(
                f"{self._corpus}, line {number}: the number of columns is {len(cells)}, but the first word has "
                f"{self.width}. Fix the line."
            )
        if self._is_conllu and not cells[0].isdecimal():
            return None
        for name, index in (("word", self._word), ("tag", self._tag)):
            if index is not None and not cells[index]:
                raise DataError(f"{self._corpus}, line {number}: the {name} is empty. Fix the line.")
        return cells

    def build(self, sentence: Sequence[tuple[int, _Cells]], identifier: str | None) -> TaggedSentence:
        """Return a sentence. sentence: at least one line."""
        columns = list(zip(*(cells for _, cells in sentence), strict=True))
        return TaggedSentence(
            words=columns[self._word],
            tags=None if self._tag is None else columns[self._tag],
            features=tuple(columns[index] for index in self._features),
            id=identifier,
            lines=tuple(number for number, _ in sentence),
        )

    def _split(self, line: str) -> _Cells:
        return line.split("\t") if self._by_tabs else re.split(" +", line.strip(" "))


def _is_blank(line: str) -> bool:
    return not line.strip(" \t")
