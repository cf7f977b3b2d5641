"""`Batch`: padded sentence pairs as the model and the objective read them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.data.batches.targets import TargetBatch
from dragoman.data.sentences import Sentences
from dragoman.text.symbols import BOS, EOS, PAD


@dataclass(frozen=True)
class Batch(TargetBatch):
    """B sentence pairs, padded on the right.

    source: (B, S) int64, each sentence ends with EOS, or (B, S, n) float32, each sequence of vectors ends with a
    vector of zeros; source_mask: (B, S) bool, True where a token stands.
    The others as in `TargetBatch`: `inputs` is BOS and the target without its EOS, `labels` the target with its EOS.
    """

    source: Tensor
    source_mask: Tensor

    @property
    def reads(self) -> tuple[Tensor, ...]:
        """What a model reads of it: the source, where it has tokens, and what the target is predicted from."""
        return self.source, self.source_mask, self.inputs

    def _part(self, rows: slice) -> Self:
        width = int(self.source_mask[rows].sum(1).max())
        source, source_mask = self.source[rows, :width], self.source_mask[rows, :width]
        return replace(super()._part(rows), source=source, source_mask=source_mask)


def pad(
    sentences: Sequence[Sequence[int] | NDArray[Any]] | Sentences,
    before: tuple[int, ...] = (),
    after: tuple[int, ...] = (),
) -> tuple[Tensor, Tensor]:
    """Stack id sequences, each with `before` and `after` added: ids (B, L) int64 and mask (B, L) bool.

    Sequences of vectors (L, n) become (B, L, n) float32, with vectors of zeros for special symbols and padding.
    """
    if not isinstance(sentences, Sentences):
        sentences = Sentences.of(sentences)
    lengths = sentences.lengths[:, None] + len(before)
    columns = np.arange(int(lengths.max()) + len(after))
    if inner := sentences.ids.shape[1:]:
        ids = np.zeros((len(sentences), len(columns), *inner), dtype=np.float32)
    else:
        ids = np.full((len(sentences), len(columns)), PAD, dtype=np.int64)
        ids[:, : len(before)] = before
        for place, symbol in enumerate(after):
            np.put_along_axis(ids, lengths + place, symbol, axis=1)
    ids[(columns >= len(before)) & (columns < lengths)] = sentences.ids
    mask = columns < lengths + len(after)
    return torch.from_numpy(ids), torch.from_numpy(mask)


def collate(
    sources: Sequence[Sequence[int] | NDArray[Any]] | Sentences,
    targets: Sequence[Sequence[int] | NDArray[Any]] | Sentences,
    rows: Sequence[int],
) -> Batch:
    """A `Batch` of token ids that carry no special symbols yet."""
    if not isinstance(targets, Sentences):
        targets = Sentences.of(targets)
    source, source_mask = pad(sources, after=(EOS,))
    inputs, _ = pad(targets, before=(BOS,))
    labels, target_mask = pad(targets, after=(EOS,))
    return Batch(
        source=source,
        source_mask=source_mask,
        inputs=inputs,
        labels=labels,
        target_mask=target_mask,
        target_tokens=int(targets.lengths.sum()) + len(targets),
        rows=tuple(int(row) for row in rows),
    )
