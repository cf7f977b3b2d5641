"""`TreeSymbols`, the vocabulary of linearised trees."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property

from dragoman.base.errors import ConfigError
from dragoman.text.symbols import SPECIAL_SYMBOLS, UNK
from dragoman.text.trees.linearization import ANY_WORD, closing, linearise, opening
from dragoman.text.trees.tree import Tree


@dataclass(frozen=True)
class TreeSymbols:
    """The special symbols, the tags of words, an opening bracket for each label, and the closing brackets.

    labels: of constituents. tags: of words; None: `ANY_WORD` stands for all words.
    """

    labels: tuple[str, ...]
    tags: tuple[str, ...] | None

    @property
    def words(self) -> tuple[str, ...]:
        """The symbols of words."""
        return (ANY_WORD,) if self.tags is None else self.tags

    @property
    def first_word(self) -> int:
        """The id of the first symbol of words."""
        return len(SPECIAL_SYMBOLS)

    @property
    def first_opening(self) -> int:
        """The id of the opening bracket of the first label."""
        return self.first_word + len(self.words)

    @property
    def first_closing(self) -> int:
        """The id of the closing bracket of the first label."""
        return self.first_opening + len(self.labels)

    @property
    def size(self) -> int:
        """Number of symbols."""
        return self.first_closing + len(self.labels)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return (*SPECIAL_SYMBOLS, *self.words, *map(opening, self.labels), *map(closing, self.labels))

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self._names) if number >= self.first_word}

    def encode(self, tree: Tree) -> list[int]:
        """Return the ids of a tree, without special symbols; UNK for unknown labels and tags."""
        return [self._ids.get(name, UNK) for name in linearise(tree, self.tags is not None)]

    def parse(self, text: str) -> list[int]:
        """Return the ids of symbols that are separated by blanks, such as `(S (NP DT`.

        Raises ConfigError for an unknown symbol.
        """
        symbols = text.split()
        for symbol in symbols:
            if symbol not in self._ids:
                close = get_close_matches(symbol, self._ids, 1, 0)
                raise ConfigError(f"this parser has no symbol {symbol!r}: did you mean {close[0]}?")
        return [self._ids[symbol] for symbol in symbols]

    def decode(self, ids: Sequence[int]) -> list[str]:
        """Return the symbols of ids."""
        return [self._names[number] for number in ids]
