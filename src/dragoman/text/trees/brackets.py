"""Reading of bracketed trees, as in the files of the Penn Treebank."""

import re
from collections.abc import Iterable, Iterator

from dragoman.base.errors import DataError
from dragoman.text.trees.tree import Constituent, Tree, Word

_TOKENS = re.compile(r"[()]|[^()\s]+")


def parse_tree(text: str) -> Tree:
    """Return the tree of a text such as (S (NP (DT The) (NN end))), which may contain several trees side by side.

    A blank text is a tree without words. Several words in one bracket, as in (NN ice cream), all have its tag. Raises
    DataError if the brackets do not form a tree.
    """
    reader = _Reader()
    for token in _TOKENS.findall(text):
        reader.read(token)
    return reader.finish()


def read_trees(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, Tree]]:
    """Yield each tree of a text, with the number of the line in which it begins.

    lines: numbered lines. A tree may extend over several lines, and a line may contain several trees. Raises
    DataError, with the line, if the brackets do not form trees.
    """
    reader, start, number = _Reader(), 0, 0
    for number, line in lines:
        for token in _TOKENS.findall(line):
            start = number if reader.is_empty else start
            try:
                reader.read(token)
                if reader.is_complete:
                    yield start, reader.finish()
                    reader = _Reader()
            except DataError as error:
                raise DataError(f"line {number}: {error}") from None
    try:
        if not reader.is_empty:
            yield start, reader.finish()
    except DataError as error:
        raise DataError(f"line {number}: {error} (the tree begins in line {start})") from None


class _Reader:
    """Builds a tree from its tokens: brackets, labels and words."""

    def __init__(self) -> None:
        self._words: list[Word] = []
        self._constituents: list[Constituent] = []
        self._open: list[list[str]] = []
        """The label, and the word if it has one, of each open bracket."""
        self._numbers: list[int] = []
        """The index of the constituent of each open bracket."""

    @property
    def is_empty(self) -> bool:
        """Whether no token has been read."""
        return not (self._open or self._words)

    @property
    def is_complete(self) -> bool:
        """Whether all brackets are closed."""
        return not self._open

    def read(self, token: str) -> None:
        """Read one token. Raises DataError if no tree continues in this way."""
        if token == "(":
            if self._open and len(self._open[-1]) > 1:
                raise DataError(f"{self._open[-1][1]!r} is followed by a bracket, but a word has a bracket of its own")
            self._numbers.append(len(self._constituents))
            self._constituents.append(Constituent("", len(self._words), -1))
            self._open.append([])
            return
        if not self._open:
            raise DataError(f"{token!r} is outside of all brackets")
        if token != ")":
            self._open[-1].append(token)
            if self._numbers[-1] + 1 != len(self._constituents) or self._constituents[-1].start != len(self._words):
                raise DataError(f"{token!r} has no bracket of its own: write (TAG {token})")
            return
        self._close(self._open.pop(), self._numbers.pop())

    def finish(self) -> Tree:
        """Return the tree. Raises DataError if brackets are open."""
        if self._open:
            raise DataError(f"{len(self._open)} brackets are not closed")
        return Tree(tuple(self._words), tuple(self._constituents))

    def _close(self, parts: list[str], number: int) -> None:
        start = self._constituents[number].start
        if len(parts) > 1:
            self._words += (Word(parts[0], text) for text in parts[1:])
            del self._constituents[number]
        elif start == len(self._words):
            raise DataError(f"the constituent ({' '.join(parts)}) has no words")
        else:
            label = parts[0] if parts else ""
            self._constituents[number] = Constituent(label, start, len(self._words))
