"""`CleanedTexts`: a corpus of documents that was judged passage by passage, and what stays of it."""

from collections.abc import Iterator
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from dragoman.data.preparation.blocks import block_file, read_block
from dragoman.data.preparation.cleaned import Cleaned, text_bytes
from dragoman.data.preparation.cleaning import CleaningConfig
from dragoman.data.preparation.text_cleaning import TextCleaningConfig, TextRules

BYTES_A_PAIR = 133
"""UTF-8 of both sides of a sentence pair: 40 MB are some 300,000."""


class CleanedTexts(Cleaned):
    """Like `Cleaned` with passages for pairs. A document stays as a whole or not at all, and is counted once."""

    sides = TextRules.sides
    items = TextRules.items
    unit = "documents"

    def _judge(self, config: CleaningConfig | TextCleaningConfig) -> None:
        self._spread()
        super()._judge(config)
        self._spread()

    def _spread(self) -> None:
        """What became of one passage becomes of its whole document."""
        first, worst = 0, 0  # of the document that has begun in an earlier block
        for number in range(len(self)):
            begins, verdicts = self._begins(number), self.verdicts(number)
            starts = np.flatnonzero(begins)
            rest = int(starts[0]) if len(starts) else len(begins)
            found = int(verdicts[:rest].max(initial=worst))
            if found:
                self._verdicts[first : self.starts[number] + rest] = found
            if len(starts):
                each = np.maximum.reduceat(verdicts, starts)
                verdicts[rest:] = np.repeat(each, np.diff(starts, append=len(begins)))
                first, found = int(self.starts[number] + starts[-1]), int(each[-1])
            worst = found

    def _digests(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64]]]:
        """Of each document that stays, where it begins, and a digest of those of its passages."""
        first, whole = 0, blake2b()
        for number in range(len(self)):
            before, begins, ends, found = read_block(
                block_file(self.folder, number), "verdicts", "begins", "ends", "digests"
            )
            staying = self.verdicts(number) == 0
            digests = np.zeros((len(before), 2), np.uint64)
            digests[before == 0] = found
            single = begins & ends
            places, of_documents = [], []
            for place in np.flatnonzero(staying & ~single).tolist():
                if begins[place]:
                    first, whole = int(self.starts[number]) + place, blake2b(digest_size=16)
                whole.update(digests[place].tobytes())
                if ends[place]:
                    places.append(first)
                    of_documents.append(np.frombuffer(whole.digest(), np.uint64))
            chosen = np.flatnonzero(staying & single)
            yield (
                np.concatenate([np.array(places, np.int64), self.starts[number] + chosen]),
                np.concatenate([np.array(of_documents, np.uint64).reshape(-1, 2), digests[chosen]]),
            )

    @property
    def pairs(self) -> int:
        """As many as have so much text, at least one."""
        return max(1, text_bytes(self.folder, self.starts, "text") // BYTES_A_PAIR)

    def _counted(self, number: int) -> NDArray[np.uint8]:
        return np.where(self._begins(number), self.verdicts(number), 0).astype(np.uint8)

    def _total(self) -> int:
        return sum(int(self._begins(number).sum()) for number in range(len(self)))

    def _begins(self, number: int) -> NDArray[np.bool_]:
        (begins,) = read_block(block_file(self.folder, number), "begins")
        return begins
