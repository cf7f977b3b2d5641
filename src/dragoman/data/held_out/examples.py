"""`HeldOutExamples`: the validation and test examples that were held out from labelled data."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from dragoman.base.errors import DataError
from dragoman.data.cleaning.sentence_keys import sentence_key
from dragoman.data.held_out.config import HeldOutConfig, Sizes
from dragoman.data.held_out.texts import NO_KEYS, TextKeys, choose_rows
from dragoman.data.labelled.examples import ParsedSentence, Question

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
        known: TextKeys = NO_KEYS,
    ) -> "HeldOutExamples[E]":
        """Choose examples by their text, so that near-duplicates are together. names: of the corpora, for messages.

        text: returns the text of an example; of a pair, the first one, so that no text of the test set was seen with
        another partner; of a question, its context, with all contexts of its article if the corpus has enough
        articles with titles. labels: returns the labels of an example, each of which remains in
        training. only_test: whether only a test set is needed. known: the sets of other tasks of the run; a text of
        their validation sets is not chosen for testing, and vice versa. Raises DataError for too few examples, and
        ConfigError as `HeldOutConfig.sizes` does.
        """
        sizes = config.sizes(len(examples), names, "examples")
        keys = [sentence_key(text(example)) for example in examples]
        needed = Sizes(0 if only_test else sizes.valid, sizes.test)
        kept = [tuple(labels(each)) for each in examples]
        titles = [each.title if isinstance(each, Question) else "" for each in examples]
        valid, test = choose_rows(keys, kept, needed, config.seed, known=known, titles=titles)
        if any(titles) and (not test or (needed.valid and not valid)):  # too few articles, or too large ones
            valid, test = choose_rows(keys, kept, needed, config.seed, known=known)
        if not test or (needed.valid and not valid):
            raise DataError(
                f"{names}: too few examples with different texts to hold out a validation set: give one (data.valid)"
            )
        return cls(*(as_stored([examples[row] for row in rows]) for rows in (valid, test)))

    def keys(self, text: Callable[[E], str]) -> TextKeys:
        """Return the keys of the texts of both sets. text: as in `choose`."""
        return TextKeys(*(frozenset(sentence_key(text(each)) for each in part) for part in (self.valid, self.test)))

    @property
    def sizes(self) -> Sizes:
        """The numbers of examples."""
        return Sizes(len(self.valid), len(self.test))

    def __str__(self) -> str:
        parts = ((len(self.valid), "validation"), (len(self.test), "testing"))
        return ", ".join(f"{count:,} examples for {name}" for count, name in parts if count)


def as_stored(examples: list[Any]) -> list[Any]:
    """Return the examples of a set in the form in which they are read back from their files.

    The questions of several corpora can have the same identifiers, which are unique in one file. Sentences are grouped
    by the tags of their treebanks, which have a file each.
    """
    if examples and isinstance(examples[0], Question):
        seen = Counter[str]()
        for row, each in enumerate(examples):
            seen[each.id] += 1
            if seen[each.id] > 1:
                examples[row] = replace(each, id=f"{each.id} ({seen[each.id]})")
    elif examples and isinstance(examples[0], ParsedSentence):
        examples = [replace(each, part=0) for each in sorted(examples, key=lambda each: each.tag)]
    return examples
