"""`HeldOutExamples`: the validation and test examples that were held out from labelled data, in files of the run."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from dragoman.base.errors import DataError
from dragoman.data.cleaning.sentence_keys import sentence_key
from dragoman.data.held_out.config import HeldOutConfig, Sizes
from dragoman.data.held_out.texts import choose_rows
from dragoman.data.labelled.corpus import ColumnsConfig, LabelledCorpusConfig, TaggedCorpusConfig
from dragoman.data.labelled.examples import LabelledText, TaggedSentence
from dragoman.data.labelled.read import read_labelled, read_tagged

_KEYS = ("text", "pair", "label", "id")
_SENTENCE_ID = "# sent_id = "

E = TypeVar("E")


@dataclass(frozen=True)
class HeldOutExamples(Generic[E]):
    """The examples of a validation and a test set. valid is empty if the recipe names that set."""

    valid: Sequence[E]
    test: Sequence[E]

    @classmethod
    def choose(
        cls,
        examples: Sequence[E],
        config: HeldOutConfig,
        names: str,
        text: Callable[[E], str],
        labels: Callable[[E], Iterable[str]],
        *,
        only_test: bool = False,
    ) -> "HeldOutExamples[E]":
        """Choose examples by their text, so that near-duplicates are together. names: of the corpora, for messages.

        text: returns the text of an example; of a pair, the first one, so that no text of the test set was seen with
        another partner. labels: returns the labels of an example, each of which remains in training. only_test: whether
        only a test set is needed. Raises DataError for too few examples, and ConfigError as `HeldOutConfig.sizes` does.
        """
        sizes = config.sizes(len(examples), names, "examples")
        keys = [sentence_key(text(example)) for example in examples]
        needed = Sizes(0 if only_test else sizes.valid, sizes.test)
        valid, test = choose_rows(keys, [tuple(labels(each)) for each in examples], needed, config.seed)
        if not test or (needed.valid and not valid):
            raise DataError(
                f"{names}: too few examples with different texts to hold out a validation set: give one (data.valid)"
            )
        return cls([examples[row] for row in valid], [examples[row] for row in test])

    def remaining(self, examples: Sequence[E], text: Callable[[E], str]) -> list[E]:
        """Return the examples that are in neither set. text: as in `choose`."""
        keys = {sentence_key(text(each)) for each in (*self.valid, *self.test)}
        return [each for each in examples if sentence_key(text(each)) not in keys]

    @property
    def sizes(self) -> Sizes:
        """The numbers of examples."""
        return Sizes(len(self.valid), len(self.test))

    def __str__(self) -> str:
        parts = ((len(self.valid), "validation"), (len(self.test), "testing"))
        return ", ".join(f"{count:,} examples for {name}" for count, name in parts if count)


def load_examples(folder: Path) -> HeldOutExamples[Any] | None:
    """Read the sets in a folder; None if there are none. Raises DataError if a file is damaged."""
    if find_examples(folder, "test") is None:
        return None
    read: list[list[Any]] = []
    for part in ("valid", "test"):
        path = find_examples(folder, part)
        corpus = None if path is None else stored_corpus(path)
        if corpus is None:
            read.append([])
        else:
            read.append(read_labelled(corpus) if isinstance(corpus, LabelledCorpusConfig) else read_tagged(corpus))
    return HeldOutExamples(*read)


def save_examples(folder: Path, sets: HeldOutExamples[Any]) -> None:
    """Write the sets into a folder, unless it has them: labelled texts as JSON Lines, tagged sentences in columns."""
    folder.mkdir(exist_ok=True)
    for part, examples in (("valid", sets.valid), ("test", sets.test)):
        if examples and find_examples(folder, part) is None:
            is_tagged = isinstance(examples[0], TaggedSentence)
            lines = map(_sentence, examples) if is_tagged else map(_object, examples)
            (folder / f"{part}.{'conll' if is_tagged else 'jsonl'}").write_text("".join(lines), encoding="utf-8")


def find_examples(folder: Path, part: str) -> Path | None:
    """Return the file of a set, `valid` or `test`, in a folder, or None if the folder has no such set."""
    return next((path for kind in ("jsonl", "conll") if (path := folder / f"{part}.{kind}").is_file()), None)


def stored_corpus(path: Path) -> LabelledCorpusConfig | TaggedCorpusConfig:
    """Return the settings with which a stored file is read. Raises DataError if the file cannot be read."""
    try:
        with path.open(encoding="utf-8") as file:
            first = next(line for line in file if not line.startswith(_SENTENCE_ID))
        if path.suffix == ".conll":
            columns = tuple(range(2, first.count("\t") + 1))
            return TaggedCorpusConfig(path=path, format="conll", word=1, tag="last", features=columns, comment="# sent")
        keys = json.loads(first)
        return LabelledCorpusConfig(
            path=path, format="jsonl", columns=ColumnsConfig(**{key: key for key in _KEYS if key in keys})
        )
    except (OSError, ValueError, StopIteration) as error:
        raise DataError(f"{path} is damaged ({error}). Restore it, or train in another --out.") from None


def _object(example: LabelledText) -> str:
    text, pair = (*example.texts, None)[:2]
    values = zip(_KEYS, (text, pair, example.label, example.id), strict=True)
    return json.dumps({key: value for key, value in values if value is not None}, ensure_ascii=False) + "\n"


def _sentence(sentence: TaggedSentence) -> str:
    head = "" if sentence.id is None else f"{_SENTENCE_ID}{sentence.id}\n"
    rows = zip(sentence.words, *sentence.features, sentence.tags or (), strict=True)
    return head + "".join("\t".join(row) + "\n" for row in rows) + "\n"
