"""Examples of labelled corpora: texts with labels, sentences with tags or trees, and questions with answers."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from dragoman.text.trees.tree import Tree


@dataclass(frozen=True)
class LabelledText:
    """A text or a pair of texts with its label.

    texts: one text, or two. label: the label as written in the file, also if it is a number; None if the example has no
    label. id: identifier of the example in the file; None if the file has no identifiers. file, line: where the example
    was read; not a part of its value.
    """

    texts: tuple[str, ...]
    label: str | None = None
    id: str | None = None
    file: str = field(default="", compare=False, repr=False)
    line: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True)
class TaggedSentence:
    """The words of a sentence with their tags.

    tags: one tag per word, or None if the sentence has no tags. features: further columns, such as parts of speech,
    each with one value per word. file, line: where the sentence was read; not a part of its value. lines: the line of
    each word; empty if all are in one line.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    features: tuple[tuple[str, ...], ...] = ()
    id: str | None = None
    file: str = field(default="", compare=False, repr=False)
    line: int = field(default=0, compare=False, repr=False)
    lines: tuple[int, ...] = field(default=(), compare=False, repr=False)

    def location(self, word: int = 0) -> str:
        """Return the file and the line of a word, for messages. word: its index."""
        return f"{self.file}, line {self.lines[word] if self.lines else self.line}"


@dataclass(frozen=True)
class ParsedSentence:
    """The words of a sentence with their constituency tree.

    tree: a tree with the same words, or None if it is unknown. tag: the tag of the treebank, which precedes the words
    in the input of a model; empty for none. part: index of the corpus that contains the sentence.
    """

    words: tuple[str, ...]
    tree: Tree | None = None
    tag: str = ""
    part: int = 0
    id: str | None = None


@dataclass(frozen=True)
class Answer:
    """An answer that is a part of the context. start: its first character, counted from 0."""

    text: str
    start: int


@dataclass(frozen=True)
class Question:
    """A question about a context, with its correct answers.

    answers: alternative answers, each of which is correct. impossible: the context does not contain the answer. title:
    of the article that contains the context; empty if unknown.
    """

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...] = ()
    impossible: bool = False
    title: str = field(default="", repr=False)

    @property
    def answered(self) -> bool:
        """True if the question has answers or is marked as impossible."""
        return bool(self.answers) or self.impossible


def fingerprint(examples: Iterable[object]) -> str:
    """Return a digest of examples."""
    digest = hashlib.sha256()
    for example in examples:
        digest.update(f"{example!r}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
