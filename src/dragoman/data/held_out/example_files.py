"""The files of held-out examples in a run, in formats that dragoman and other programs read."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from dragoman.base.errors import DataError
from dragoman.base.settings.config import Config
from dragoman.data.held_out.examples import HeldOutExamples
from dragoman.data.labelled.corpus import (
    ColumnsConfig,
    LabelledCorpusConfig,
    QuestionCorpusConfig,
    TaggedCorpusConfig,
    TreebankCorpusConfig,
)
from dragoman.data.labelled.examples import LabelledText, ParsedSentence, Question, TaggedSentence
from dragoman.data.labelled.read import read_labelled, read_parsed, read_questions, read_tagged

PARTS = ("valid", "test")
_KEYS = ("text", "pair", "label", "id")
_SENTENCE_ID = "# sent_id = "


@dataclass(frozen=True)
class _Format:
    """A format. names: the names of the files of a set, and their examples. corpus: the settings of a file."""

    examples: type
    suffix: str
    write: Callable[[Sequence[Any]], Iterator[str]]
    corpus: Callable[[Path], Config]
    read: Callable[..., list[Any]]


def load_examples(folder: Path) -> HeldOutExamples[Any] | None:
    """Read the sets in a folder; None if there are none. Raises DataError if a file is damaged."""
    if not find_examples(folder, "test"):
        return None
    read = [[each for path in find_examples(folder, part) for each in _read(path)] for part in PARTS]
    return HeldOutExamples(*read)


def save_examples(folder: Path, sets: HeldOutExamples[Any]) -> None:
    """Write the sets into a folder, unless it has them (`save_part`)."""
    folder.mkdir(exist_ok=True, parents=True)
    for part, examples in zip(PARTS, (sets.valid, sets.test), strict=True):
        if examples and not find_examples(folder, part):
            save_part(folder, part, examples)


def save_part(folder: Path, part: str, examples: Sequence[Any]) -> None:
    """Write the examples of a set, at least one, into a folder. part: name of the set.

    Labelled texts are written as JSON Lines, tagged sentences in columns, questions as SQuAD's JSON, and trees in
    brackets, those of each tag of a treebank in a file of its own.
    """
    for tag, group in groupby(examples, lambda example: getattr(example, "tag", "")):
        write_examples(folder, f"{part}.{quote(tag, safe='')}" if tag else part, list(group))


def write_examples(folder: Path, stem: str, examples: Sequence[Any]) -> Path:
    """Write a file of examples of one kind, at least one, and return its path. stem: its name without the suffix."""
    chosen = next(each for each in _FORMATS if isinstance(examples[0], each.examples))
    path = folder / f"{stem}.{chosen.suffix}"
    path.write_text("".join(chosen.write(examples)), encoding="utf-8")
    return path


def find_examples(folder: Path, part: str) -> list[Path]:
    """Return the files of a set, `valid` or `test`, in a folder; empty if the folder has no such set."""
    found = [path for each in _FORMATS if (path := folder / f"{part}.{each.suffix}").is_file()]
    return [*found, *sorted(folder.glob(f"{part}.*.{_TREES}"))]


def stored_corpus(path: Path) -> Config:
    """Return the settings with which a stored file is read. Raises DataError if the file cannot be read."""
    try:
        return next(each for each in _FORMATS if path.name.endswith(f".{each.suffix}")).corpus(path)
    except (OSError, ValueError, StopIteration) as error:
        raise DataError(f"{path} is damaged ({error}). Restore it, or train in another --out.") from None


def _read(path: Path) -> list[Any]:
    corpus = stored_corpus(path)
    return next(each for each in _FORMATS if path.name.endswith(f".{each.suffix}")).read(corpus)


def _labelled_corpus(path: Path) -> LabelledCorpusConfig:
    with path.open(encoding="utf-8") as file:
        keys = json.loads(next(file))
    return LabelledCorpusConfig(
        path=path, format="jsonl", columns=ColumnsConfig(**{key: key for key in _KEYS if key in keys})
    )


def _tagged_corpus(path: Path) -> TaggedCorpusConfig:
    with path.open(encoding="utf-8") as file:
        first = next(line for line in file if not line.startswith(_SENTENCE_ID))
    columns = tuple(range(2, first.count("\t") + 1))
    return TaggedCorpusConfig(path=path, format="conll", word=1, tag="last", features=columns, comment="# sent")


def _treebank(path: Path) -> TreebankCorpusConfig:
    tag = unquote(path.name.partition(".")[2].removesuffix(_TREES).removesuffix("."))
    return TreebankCorpusConfig(path=path, format="trees", tag=tag or None)


def _objects(examples: Sequence[LabelledText]) -> Iterator[str]:
    for example in examples:
        text, pair = (*example.texts, None)[:2]
        values = zip(_KEYS, (text, pair, example.label, example.id), strict=True)
        yield json.dumps({key: value for key, value in values if value is not None}, ensure_ascii=False) + "\n"


def _columns(sentences: Sequence[TaggedSentence]) -> Iterator[str]:
    for sentence in sentences:
        if sentence.id is not None:
            yield f"{_SENTENCE_ID}{sentence.id}\n"
        for row in zip(sentence.words, *sentence.features, sentence.tags or (), strict=True):
            yield "\t".join(row) + "\n"
        yield "\n"


def _squad(questions: Sequence[Question]) -> Iterator[str]:
    """Yield the file. Adjacent questions with one title or context are in one article or paragraph, in their order."""
    has_impossible = any(each.impossible for each in questions)
    articles = [
        {"title": title, "paragraphs": list(_paragraphs(group, has_impossible))}
        for title, group in groupby(questions, lambda question: question.title)
    ]
    document = {"version": "v2.0" if has_impossible else "1.1", "data": articles}
    yield json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def _paragraphs(questions: Iterable[Question], has_impossible: bool) -> Iterator[dict[str, Any]]:
    for context, group in groupby(questions, lambda question: question.context):
        yield {"context": context, "qas": [_question(each, has_impossible) for each in group]}


def _question(question: Question, has_impossible: bool) -> dict[str, Any]:
    answers = [{"text": each.text, "answer_start": each.start} for each in question.answers]
    mark = {"is_impossible": question.impossible} if has_impossible else {}
    return {"id": question.id, "question": question.question, "answers": answers, **mark}


def _trees(sentences: Sequence[ParsedSentence]) -> Iterator[str]:
    return (f"{sentence.tree}\n" for sentence in sentences)


_TREES = "trees"
_FORMATS = (
    _Format(LabelledText, "jsonl", _objects, _labelled_corpus, read_labelled),
    _Format(TaggedSentence, "conll", _columns, _tagged_corpus, read_tagged),
    _Format(Question, "json", _squad, lambda path: QuestionCorpusConfig(path=path), read_questions),
    _Format(ParsedSentence, _TREES, _trees, _treebank, read_parsed),
)
