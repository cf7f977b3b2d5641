"""What a vocabulary is learned from: all the text of small corpora, and a fixed part of large ones."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from dragoman.base.log import info
from dragoman.data.blocks import block_file, read_block, split_texts
from dragoman.data.cleaned import Cleaned
from dragoman.data.permutation import mixed
from dragoman.text.tokenizers import TextConfig, Tokenizers, train_tokenizers

SAMPLE = 40_000_000
"""Bytes of text; about 400,000 sentence pairs. The entries of a vocabulary of 32,000 occur some dozen times in it."""


@dataclass(frozen=True)
class Sample:
    """A part of a cleaned corpus: each pair with probability `rate`, which depends on its place alone."""

    cleaned: Cleaned
    rate: float

    def texts(self, side: str) -> Iterator[str]:
        """The texts of a side (source or target), in the order of the corpus."""
        for number in range(len(self.cleaned)):
            path = block_file(self.cleaned.folder, number)
            verdicts, joined, ends = read_block(path, "verdicts", side, f"{side}_ends")
            yield from split_texts(joined, ends, np.flatnonzero(self._chosen(number, verdicts)))

    def _chosen(self, number: int, verdicts: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Of the stored texts of a block, which are read."""
        places = np.flatnonzero(verdicts == 0)
        chosen: NDArray[np.bool_] = self.cleaned.verdicts(number)[places] == 0
        if self.rate < 1:
            drawn = mixed((places + self.cleaned.starts[number]).astype(np.uint64), 0)
            chosen &= drawn < np.uint64(self.rate * 2**64)
        return chosen


def learn_vocabulary(
    corpora: Sequence[Cleaned], weights: Sequence[float], text: TextConfig, most: int = SAMPLE
) -> Tokenizers:
    """Learn subwords from corpora that an epoch reads `weights` times each.

    most: bytes of text, both sides together. Where the corpora have no more, all of it is read; else of each a part, so
    that they stand in it as in an epoch.
    """
    sizes = [_bytes(cleaned, text.vectors is not None) for cleaned in corpora]
    samples = [Sample(cleaned, 1.0) for cleaned in corpora]
    if sum(sizes) > most:
        whole = sum(size * weight for size, weight in zip(sizes, weights, strict=True))
        rates = [min(1.0, most * weight / whole) for weight in weights]
        samples = [Sample(cleaned, rate) for cleaned, rate in zip(corpora, rates, strict=True)]
        share = sum(size * rate for size, rate in zip(sizes, rates, strict=True)) / sum(sizes)
        info(f"Data: subwords are learned from {share:.1%} of the text (data.vocabulary_sample={most})")
    pairs = sum(cleaned.report.kept for cleaned in corpora)
    sized = text.model_copy(update={"subword": text.subword.sized(pairs)})
    sources, targets = (
        chain.from_iterable([sample.texts(side) for sample in samples]) for side in ("source", "target")
    )
    return train_tokenizers(sized, sources, targets)


def _bytes(cleaned: Cleaned, vectors: bool) -> int:
    """UTF-8 of what stays of a corpus; vectors: of its targets only."""
    total = 0
    for number in range(len(cleaned)):
        kept = cleaned.verdicts(number)
        path = block_file(cleaned.folder, number)
        (verdicts,) = read_block(path, "verdicts")
        for ends in read_block(path, *(["target_ends"] if vectors else ["source_ends", "target_ends"])):
            total += int(np.diff(ends, prepend=0)[kept[verdicts == 0] == 0].sum())
    return total
