"""Pairs of texts for next-sentence prediction: does the second text continue the first?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.data.batches.labelled import NO_LABEL
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.words import number_words

_DRAW = 1 << 32
"""Part of the random seed, different from all epochs' attempts in `MaskedCollator`."""
_ATTEMPTS = 8


class SentencePair(NamedTuple):
    """A text in one or two parts. continues: 1 if the second part follows the first in its document, 0 if it is from
    another document, NO_LABEL if there is only one part.
    """

    parts: tuple[NDArray[np.int64], ...]
    continues: int


@dataclass(frozen=True)
class PairMaker:
    """Divides a block at a random word boundary, and replaces half of the second parts by text of other documents.

    read: returns the tokens of a block, without special symbols. documents: (N,) number of the document of each
    block. The result depends only on seed, epoch and block.
    """

    tokenizer: Tokenizer
    read: Callable[[int], NDArray[np.int64]]
    documents: Sequence[int] | NDArray[np.int64]
    seed: int

    def divide(self, ids: NDArray[np.int64], epoch: int, row: int) -> SentencePair:
        """Return the parts of block `row`, whose tokens are `ids`."""
        draw = np.random.default_rng((self.seed, epoch, row, _DRAW))
        cuts = self._boundaries(ids)
        if not len(cuts):
            return SentencePair((ids,), NO_LABEL)
        cut = int(draw.choice(cuts))
        first, second = ids[:cut], ids[cut:]
        if draw.random() < 0.5:
            return SentencePair((first, second), 1)
        for _ in range(_ATTEMPTS):
            other = int(draw.integers(len(self.documents)))
            if self.documents[other] == self.documents[row]:
                continue
            text = self.read(other)
            starts = self._boundaries(text)
            if len(starts):
                start = int(draw.choice(starts))
                return SentencePair((first, text[start : start + len(second)]), 0)
        return SentencePair((first, second), 1)

    def _boundaries(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions, except the first, at which a word starts."""
        words = np.array(number_words([self.tokenizer.surface(number) for number in ids.tolist()]), np.int64)
        return np.flatnonzero(words[1:] != words[:-1]) + 1
