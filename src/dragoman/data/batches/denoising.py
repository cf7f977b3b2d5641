"""Batches of denoising: corrupted texts, and what a model learns to produce from them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dragoman.data.batches.batch import Batch, collate
from dragoman.data.batches.masked import content
from dragoman.data.dataset import Sentences
from dragoman.data.noise.noise import Corruption


@dataclass(frozen=True)
class DenoisingCollator:
    """Makes batches from blocks of documents, as `TextDataset.take` and `document_blocks` return them.

    epoch: number of the epoch, which determines the noise together with the rows.
    """

    corruption: Corruption
    epoch: int = 0

    def __call__(self, blocks: Sentences | Sequence[Sequence[int]], rows: Sequence[int]) -> Batch:
        """Return a batch of pairs. rows: dataset row of each block."""
        if not isinstance(blocks, Sentences):
            blocks = Sentences.of(blocks)
        texts = np.split(blocks.ids.astype(np.int64), np.cumsum(blocks.lengths)[:-1])
        pairs = [self.corruption.corrupt(content(ids), self.epoch, row) for ids, row in zip(texts, rows, strict=True)]
        return collate([pair.source for pair in pairs], [pair.target for pair in pairs], rows)
