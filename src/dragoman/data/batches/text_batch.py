"""`TextBatch`: padded excerpts of plain text as a language model and the objective read them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray

from dragoman.data.batches.batch import pad
from dragoman.data.batches.targets import TargetBatch
from dragoman.data.sentences import Sentences
from dragoman.text.symbols import BOS, EOS, PAD


@dataclass(frozen=True)
class TextBatch(TargetBatch):
    """B excerpts of documents, padded on the right; no row holds two documents.

    A row whose first input is BOS begins its document, one whose last label is EOS ends it. The first input of every
    other row is the last label of the excerpt before.
    """


def collate_text(excerpts: Sequence[Sequence[int] | NDArray[Any]] | Sentences, rows: Sequence[int]) -> TextBatch:
    """A `TextBatch` of n + 1 ids a row for n labels, as `TextDataset.take` and `excerpts` give them."""
    ids, mask = pad(excerpts)
    target_mask = mask[:, 1:].contiguous()
    return TextBatch(
        inputs=torch.where(target_mask, ids[:, :-1], PAD),
        labels=ids[:, 1:].contiguous(),
        target_mask=target_mask,
        target_tokens=int(target_mask.sum()),
        rows=tuple(int(row) for row in rows),
    )


def excerpts(document: Sequence[int], block: int) -> list[list[int]]:
    """The ids of a document, without special symbols, in excerpts with at most `block` labels: see `TextDataset`."""
    ids = [BOS, *document, EOS]
    return [ids[start : start + block + 1] for start in range(0, len(ids) - 1, block)]
