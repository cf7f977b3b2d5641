"""`FoldedWords`: the ids of words regardless of their case and of a preceding space."""

import numpy as np
from numpy.typing import NDArray

from dragoman.statistical.phrases.aligned_corpus import WordIds
from dragoman.text.symbols import UNK
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.vocabularies.word import WordTokenizer

UNKNOWN_WORD = -1
"""The id of a word that the vocabulary does not contain in any case."""


class FoldedWords:
    """Maps the ids of a vocabulary to the smallest id of the same word in any case, with or without a space.

    The ids of vocabularies other than those of kind `word` are not changed, because their entries are parts of words.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._ids = np.arange(tokenizer.size, dtype=np.int32)
        self._by_word: dict[str, int] = {}
        if isinstance(tokenizer, WordTokenizer):
            for number in range(tokenizer.size):
                word = fold(tokenizer.surface(number).decode("utf-8", "replace"))
                if word:
                    self._ids[number] = self._by_word.setdefault(word, number)
        self._ids[UNK] = UNKNOWN_WORD

    def of_ids(self, ids: WordIds) -> NDArray[np.int32]:
        """Return the folded ids of a text, with `UNKNOWN_WORD` for UNK."""
        return self._ids[np.asarray(ids, np.int64)]

    def of_text(self, text: str, ids: WordIds) -> tuple[NDArray[np.int32], list[str]]:
        """Return the folded ids of a text, and the words that they represent, with their spaces.

        ids: the ids of `text`. An unknown word has the id of the same word in another case, if there is one.
        """
        folded = self.of_ids(ids)
        owners, words = self._tokenizer.words(text)
        surfaces = [words[owner] for owner in owners]
        for position in np.flatnonzero(folded == UNKNOWN_WORD):
            folded[position] = self._by_word.get(fold(surfaces[position]), UNKNOWN_WORD)
        return folded, surfaces


def fold(word: str) -> str:
    """Return a word without spaces and case."""
    return word.strip().casefold()
