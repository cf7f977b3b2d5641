"""Batches of a masked language model: texts with masked tokens, one or more documents per row."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.data.batches.batch import TargetBatch, pad
from dragoman.data.batches.epoch import EpochRows, Part
from dragoman.data.batches.labelled import NO_LABEL
from dragoman.data.batches.masking import Masker
from dragoman.data.batches.plan import BatchPlan
from dragoman.data.batches.sentence_pairs import PairMaker, SentencePair
from dragoman.data.dataset import Sentences
from dragoman.text.symbols import BOS, EOS

SPECIAL = 2
"""Number of special symbols of a document, BOS and EOS."""


@dataclass(frozen=True)
class MaskedBatch(TargetBatch):
    """B rows of masked documents, padded on the right. A document starts with BOS and ends with EOS.

    inputs: (B, S) int64, the tokens that the model reads. labels: (B, S) int64, the original token where it has to be
    predicted, otherwise NO_LABEL. target_mask: (B, S) bool, True at these tokens. mask: (B, S) bool, False at padding.
    packed: whether a row may contain several documents. rows: the dataset row of the first document of each row.
    continues: (B, S) int64, at the BOS of a document with two parts 1 if the second continues the first and 0 if not,
    otherwise NO_LABEL; None without next-sentence prediction.
    """

    mask: Tensor
    packed: bool = False
    continues: Tensor | None = None

    @property
    def model_inputs(self) -> tuple[Any, ...]:
        """The arguments of the model: tokens, mask, and whether the rows are packed."""
        return self.inputs, self.mask, self.packed

    def _part(self, rows: slice) -> Self:
        width = int(self.mask[rows].sum(1).max())
        return replace(
            self,
            inputs=self.inputs[rows, :width],
            labels=self.labels[rows, :width],
            target_mask=self.target_mask[rows, :width],
            target_tokens=int(self.target_mask[rows].sum()),
            mask=self.mask[rows, :width],
            rows=self.rows[rows],
            continues=None if self.continues is None else self.continues[rows, :width],
        )


@dataclass(frozen=True)
class MaskedCollator:
    """Makes batches from blocks of documents, as `TextDataset.take` and `document_blocks` return them.

    epoch: number of the epoch, which determines the masks together with the rows. length: maximum number of tokens of a
    row with several documents; None: one document per row. pairs: divides documents into two parts, for next-sentence
    prediction; None: documents have one part.
    """

    masker: Masker
    epoch: int = 0
    length: int | None = None
    pairs: PairMaker | None = None

    def __call__(self, blocks: Sentences | Sequence[Sequence[int]], rows: Sequence[int]) -> MaskedBatch:
        """Return a batch. rows: dataset row of each block. At least one token is predicted if there is any text."""
        if not isinstance(blocks, Sentences):
            blocks = Sentences.of(blocks)
        texts = [content(ids) for ids in np.split(blocks.ids.astype(np.int64), np.cumsum(blocks.lengths)[:-1])]
        divided = [self._divide(ids, row) for ids, row in zip(texts, rows, strict=True)]
        texts = [np.concatenate(pair.parts) for pair in divided]
        draws = [self.masker.mask(ids, self.epoch, row) for ids, row in zip(texts, rows, strict=True)]
        attempt = 0
        while not any(draw.predicted.any() for draw in draws) and any(map(len, texts)) and attempt < _ATTEMPTS:
            attempt += 1
            draws = [self.masker.mask(ids, self.epoch, row, attempt) for ids, row in zip(texts, rows, strict=True)]
        cuts = [len(pair.parts[0]) if len(pair.parts) > 1 else None for pair in divided]
        inputs = [_frame(draw.ids, cut, BOS, EOS) for draw, cut in zip(draws, cuts, strict=True)]
        labels = [
            _frame(np.where(draw.predicted, ids, NO_LABEL), cut, NO_LABEL, NO_LABEL)
            for ids, draw, cut in zip(texts, draws, cuts, strict=True)
        ]
        relations = [pair.continues for pair in divided]
        numbers = list(rows)
        if self.length is not None:
            groups = list(fill_rows([len(each) for each in inputs], self.length))
            inputs = [np.concatenate([inputs[number] for number in group]) for group in groups]
            labels = [np.concatenate([labels[number] for number in group]) for group in groups]
            numbers = [rows[group[0]] for group in groups]
        ids, mask = pad(inputs)
        targets = torch.full(ids.shape, NO_LABEL, dtype=torch.int64)
        targets[mask] = torch.from_numpy(np.concatenate(labels))
        predicted = targets != NO_LABEL
        continues = None
        if self.pairs is not None:
            continues = torch.full(ids.shape, NO_LABEL, dtype=torch.int64)
            continues[ids == BOS] = torch.tensor(relations)
        return MaskedBatch(
            inputs=ids,
            labels=targets,
            target_mask=predicted,
            target_tokens=int(predicted.sum()),
            rows=tuple(int(number) for number in numbers),
            mask=mask,
            packed=self.length is not None,
            continues=continues,
        )

    def _divide(self, ids: NDArray[np.int64], row: int) -> SentencePair:
        return SentencePair((ids,), NO_LABEL) if self.pairs is None else self.pairs.divide(ids, self.epoch, row)


_ATTEMPTS = 1000


def _frame(ids: NDArray[np.int64], cut: int | None, first: int, last: int) -> NDArray[np.int64]:
    """Add `first` before a text and `last` after each of its parts, which are divided at `cut`."""
    parts = [ids] if cut is None else [ids[:cut], ids[cut:]]
    return np.concatenate([[first], *(piece for part in parts for piece in (part, [last]))])


def content(block: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the tokens of a block of a document, without the preceding token and without the EOS at its end."""
    ids = block[1:]
    return ids[:-1] if len(ids) and ids[-1] == EOS else ids


def fill_rows(lengths: Sequence[int], limit: int) -> Iterator[list[int]]:
    """Divide documents into rows in order. Yields the indices of the documents of each row.

    lengths: number of tokens of each document. limit: maximum number of tokens of a row with several documents.
    """
    row: list[int] = []
    size = 0
    for number, length in enumerate(lengths):
        if row and size + length > limit:
            yield row
            row, size = [], 0
        row.append(number)
        size += length
    if row:
        yield row


def plan_packed(
    lengths: NDArray[np.int32],
    tokens: int,
    limit: int,
    *,
    seed: int,
    epoch: int,
    parts: Sequence[Part],
    special: int = SPECIAL,
) -> BatchPlan:
    """Put every block of an epoch, in random order, into a batch of rows with several documents.

    lengths: (N, 1), numbers of tokens without special symbols. tokens: maximum number of tokens of a batch with
    padding. limit: maximum number of tokens of a row. special: number of special symbols of a block. For other
    arguments, see `plan_epoch`. `MaskedCollator` divides the blocks of a batch into the same rows.
    """
    rows = EpochRows(parts, seed, epoch)
    blocks = [rows.block(number) for number in range(len(rows))]
    order = np.concatenate(
        [np.random.default_rng((seed, epoch, number)).permutation(block) for number, block in enumerate(blocks)]
    )
    sizes = lengths[order, 0].astype(np.int64) + special
    groups = list(fill_rows(sizes.tolist(), limit))
    count = max(1, tokens // limit)
    batches, padded = [], 0
    for start in range(0, len(groups), count):
        batch = groups[start : start + count]
        widest = max(int(sizes[group[0] : group[-1] + 1].sum()) for group in batch)
        padded += widest * len(batch)
        batches.append(order[batch[0][0] : batch[-1][-1] + 1])
    return BatchPlan(batches, (1 - float(sizes.sum()) / padded,))
