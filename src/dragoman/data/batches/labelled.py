"""Padded batches of labelled examples."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.data.batches.batch import PaddedRows, pad

NO_LABEL = -100
"""The label of a token that is not predicted."""


@dataclass(frozen=True)
class LabelledBatch(PaddedRows):
    """B rows of tokens with labels, padded on the right.

    tokens: int64 (B, S), with special symbols, or (B, S, 1 + K), with factors. mask: (B, S) bool, False at padding.
    labels: (B,) for one label per row; (B, S) for labels of tokens, where `NO_LABEL` marks tokens without a label;
    (B, 2) for the first and the last token of an answer; (B, N, k) for the parts of trees, where `NO_LABEL` is padding.
    counts: number of labels of each row. rows: indices of the rows in the dataset. cut: (B, 2) bool, whether the
    example of a row has further units before and after those of the row; None: no row is a part of an example.
    """

    tokens: Tensor
    mask: Tensor
    labels: Tensor
    counts: tuple[int, ...]
    rows: tuple[int, ...]
    task: str = ""
    cut: Tensor | None = None

    @property
    def target_tokens(self) -> int:
        """Number of labels, over which the loss is summed."""
        return sum(self.counts)

    @property
    def model_inputs(self) -> tuple[Tensor, ...]:
        """The arguments of the model: tokens and mask."""
        return self.tokens, self.mask

    def _part(self, rows: slice) -> Self:
        width = int(self.mask[rows].sum(1).max())
        labels = self.labels[rows]
        return replace(
            self,
            tokens=self.tokens[rows, :width],
            mask=self.mask[rows, :width],
            labels=labels[:, :width] if labels.shape[1:] == self.mask.shape[1:] else labels,
            counts=self.counts[rows],
            rows=self.rows[rows],
            cut=None if self.cut is None else self.cut[rows],
        )


def collate_labelled(
    tokens: Sequence[Sequence[int] | NDArray[np.int64]],
    labels: Sequence[Any],
    counts: Sequence[int],
    rows: Sequence[int],
    cut: Sequence[tuple[bool, bool]] = (),
) -> LabelledBatch:
    """Return a batch of token ids, which include the special symbols, or of tokens with factors (S, 1 + K).

    labels: per row, one number, a pair of tokens, a list with a label for each token, or an array (N, k) of any length
    N, which is padded with `NO_LABEL`. counts: number of labels per
    row. cut: per row, as in `LabelledBatch`; empty for rows that are whole examples.
    """
    ids, mask = pad([np.asarray(each) for each in tokens])
    if isinstance(labels[0], Sequence) and len(labels[0]) == len(tokens[0]):
        values = torch.full(mask.shape, NO_LABEL, dtype=torch.int64)
        for row, each in enumerate(labels):
            values[row, : len(each)] = torch.tensor(each)
    elif isinstance(labels[0], np.ndarray):
        values = torch.full((len(labels), max(map(len, labels)), labels[0].shape[1]), NO_LABEL, dtype=torch.int64)
        for row, each in enumerate(labels):
            values[row, : len(each)] = torch.from_numpy(each)
    else:
        values = torch.tensor(labels)
    parts = torch.tensor(cut) if any(map(any, cut)) else None
    return LabelledBatch(ids, mask, values, tuple(counts), tuple(int(row) for row in rows), cut=parts)
