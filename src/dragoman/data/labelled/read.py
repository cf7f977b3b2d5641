"""Readers of labelled corpora in any format: `read_labelled`, `read_tagged`, `read_questions` and `read_parsed`."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import TypeVar, cast

from dragoman.base.errors import DataError
from dragoman.base.log import warn
from dragoman.base.settings.config import Config
from dragoman.data.labelled.conll import read_conll
from dragoman.data.labelled.corpus import (
    LabelledCorpusConfig,
    QuestionCorpusConfig,
    TaggedCorpusConfig,
    TreebankCorpusConfig,
)
from dragoman.data.labelled.examples import LabelledText, ParsedSentence, Question, TaggedSentence
from dragoman.data.labelled.json_lines import read_json_lines
from dragoman.data.labelled.rows import Line, Row, check_unicode, read_lines
from dragoman.data.labelled.rte import read_rte
from dragoman.data.labelled.squad import read_squad
from dragoman.data.labelled.tables import read_table
from dragoman.data.labelled.treebank import read_treebank

_Corpus = TypeVar("_Corpus", bound=Config)

_SUFFIXES = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".xml": "rte"}
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_FASTTEXT = re.compile(r"(?<!\S)__label__(\S+)")
_JOINED = re.compile(r"\s*[,;|+]\s*")
_TREC = re.compile(r"([A-Z]+):(\w+) (.*)", re.DOTALL)
_SAMPLE = 20
"""Number of lines that are examined to recognise TREC."""


def read_labelled(
    corpora: LabelledCorpusConfig | Sequence[LabelledCorpusConfig], labelled: bool = True, *, numbers: bool = False
) -> list[LabelledText]:
    """Return the texts, or pairs of texts, of one or more corpora in order.

    Labels remain text as written in the file, also if they are numbers, except for the new names in `labels`. labelled:
    whether each text must have a label. If False, a missing or blank label is None, and a file may lack the column of
    the label. numbers: whether labels must be numbers. Raises DataError with file and line if a text cannot be read or
    lacks a label, if the files of one call contain both single texts and pairs, or if a file is empty.
    """
    examples: list[LabelledText] = []
    for corpus in _listed(corpora, LabelledCorpusConfig):
        before, file = len(examples), str(corpus)
        for row in _rows(corpus, labelled):
            location = f"{corpus}, line {row.line}"
            label = row.label
            if label is not None:
                label = corpus.labels.get(check_unicode(label, location), label)
            if label is not None and not label.strip():
                label = None
            if labelled and label is None:
                raise DataError(f"{location}: the label is missing. Add a label, or remove the line.")
            if numbers and label is not None:
                _check_number(label, location)
            for text in row.texts:
                check_unicode(text, location)
            if examples and len(row.texts) != len(examples[0].texts):
                raise DataError(
                    f"{location}: the number of texts is {len(row.texts)}, but {len(examples[0].texts)} in previous "
                    "lines. Use single texts only or pairs only."
                )
            examples.append(LabelledText(row.texts, label, row.id, file, row.line))
        _check_not_empty(len(examples) - before, corpus, "example")
    _warn_of_labels({example.label for example in examples if example.label is not None})
    return examples


def read_tagged(
    corpora: TaggedCorpusConfig | Sequence[TaggedCorpusConfig], labelled: bool = True
) -> list[TaggedSentence]:
    """Return the sentences of one or more corpora in order.

    labelled: whether the words must have tags. If False, a file with a single column contains words without tags.
    Raises DataError with file and line if a line cannot be read, or if a file is empty.
    """
    sentences: list[TaggedSentence] = []
    for corpus in _listed(corpora, TaggedCorpusConfig):
        before = len(sentences)
        file = str(corpus)
        sentences += [replace(each, file=file, line=line) for line, each in read_conll(corpus, labelled)]
        _check_not_empty(len(sentences) - before, corpus, "sentence")
    return sentences


def read_questions(
    corpora: QuestionCorpusConfig | Sequence[QuestionCorpusConfig], labelled: bool = True
) -> list[Question]:
    """Return the questions of one or more corpora in order.

    labelled: whether each question must have an answer or be marked as impossible. Raises DataError with file and
    question if a question cannot be read, or if a file is empty.
    """
    questions: list[Question] = []
    for corpus in _listed(corpora, QuestionCorpusConfig):
        before = len(questions)
        questions += read_squad(corpus, labelled)
        _check_not_empty(len(questions) - before, corpus, "question")
    return questions


def read_parsed(
    corpora: TreebankCorpusConfig | Sequence[TreebankCorpusConfig], labelled: bool = True
) -> list[ParsedSentence]:
    """Return the sentences of one or more treebanks in order.

    labelled: whether the sentences must have trees. Raises DataError with file and line if a tree cannot be read, or if
    a treebank is empty.
    """
    sentences: list[ParsedSentence] = []
    for part, corpus in enumerate(_listed(corpora, TreebankCorpusConfig)):
        before = len(sentences)
        sentences += [replace(sentence, part=part) for sentence in read_treebank(corpus, labelled)]
        _check_not_empty(len(sentences) - before, corpus, "sentence")
    return sentences


def _listed(corpora: _Corpus | Sequence[_Corpus], kind: type[_Corpus]) -> list[_Corpus]:
    return [corpora] if isinstance(corpora, kind) else list(cast("Sequence[_Corpus]", corpora))


def _check_number(label: str, location: str) -> None:
    try:
        if isfinite(float(label)):
            return
    except ValueError:
        pass
    remedy = f"write {label.replace(',', '.')}" if re.fullmatch(r"\s*-?\d+,\d+\s*", label) else "correct it"
    raise DataError(
        f"{location}: the label {label!r} is not a number: {remedy}, or use task.kind=classification for classes"
    )


def _warn_of_labels(labels: set[str]) -> None:
    """Warn of labels that differ only in blanks at their ends, and of labels that seem to be several."""
    twins = sorted(label for label in labels if label != label.strip() and label.strip() in labels)
    if twins:
        names = f"{twins[0]!r} and {twins[0].strip()!r}"
        warn(f"The labels {names} are different classes. Remove the blanks, or rename one of them.")
    joined = sorted(
        label for label in labels if len(parts := _JOINED.split(label)) > 1 and not labels.isdisjoint(parts)
    )
    if joined:
        warn(
            f"{len(joined)} label(s) seem to be several labels of one text, such as {joined[0]!r}. Each is learned as "
            "one class of its own. Train one model per label to predict several."
        )


def _check_not_empty(count: int, corpus: Config, noun: str) -> None:
    if count == 0:
        raise DataError(f"The corpus {corpus} is empty. Use a file with at least one {noun}.")


def _rows(corpus: LabelledCorpusConfig, labelled: bool) -> Iterator[Row]:
    file_format: str = corpus.format
    if file_format == "auto":
        file_format = _format_of_name(corpus.path) or "auto"
    if file_format == "rte":
        return read_rte(corpus)
    lines = list(read_lines(corpus.path, corpus.encoding))  # read once, because the file may be a pipe
    if file_format == "auto":
        file_format = _recognise(lines)
    if file_format == "rte":
        return read_rte(corpus)
    if file_format == "jsonl":
        return read_json_lines(lines, corpus, labelled)
    if file_format == "trec":
        return _read_trec(lines, corpus)
    if file_format == "fasttext":
        return _read_fasttext(lines, corpus)
    if file_format == "text":
        return (Row(number, (line,)) for number, line in lines)
    return read_table(lines, corpus, file_format, labelled)


def _format_of_name(path: Path) -> str | None:
    return _SUFFIXES.get(Path(path.stem).suffix if path.suffix in _COMPRESSED else path.suffix)


def _recognise(lines: Sequence[Line]) -> str:
    """Return the format of a file whose name does not state it."""
    sample = [line for _, line in lines[:_SAMPLE]]
    first = next((line for line in sample if line.strip()), "").lstrip()
    if first.startswith("{"):
        return "jsonl"
    if first.startswith(("<?xml", "<entailment-corpus")):
        return "rte"
    if sample and all(map(_TREC.fullmatch, sample)):
        return "trec"
    if first and all(_FASTTEXT.search(line) for line in sample if line.strip()):
        return "fasttext"
    return "tsv" if "\t" in first else "text"


def _read_trec(lines: Sequence[Line], corpus: LabelledCorpusConfig) -> Iterator[Row]:
    for number, line in lines:
        match = _TREC.fullmatch(line)
        if match is None:
            raise DataError(f"{corpus}, line {number}: not of the form `COARSE:fine text`. Fix the line.")
        yield Row(number, (match[3],), match[1] if corpus.level == "coarse" else f"{match[1]}:{match[2]}")


def _read_fasttext(lines: Sequence[Line], corpus: LabelledCorpusConfig) -> Iterator[Row]:
    for number, line in lines:
        if not line.strip():
            continue
        found = list(_FASTTEXT.finditer(line))
        if len(found) > 1:
            raise DataError(
                f"{corpus}, line {number}: several labels for one text are not supported. Keep one, or train one model "
                "per label."
            )
        before, after = (line[: found[0].start()], line[found[0].end() :].lstrip(" \t")) if found else ("", "")
        text = f"{before}{after}".rstrip(" \t") if before else after
        if not text.strip():
            raise DataError(f"{corpus}, line {number}: not of the form `__label__NAME text`. Fix the line.")
        yield Row(number, (text,), found[0][1])
