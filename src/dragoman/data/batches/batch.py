"""`Batch`: padded sentence pairs as the model and the objective read them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.data.sentences import Sentences
from dragoman.text.special import BOS, EOS, PAD


@dataclass(frozen=True)
class Batch:
    """B sentence pairs, padded on the right.

    source: (B, S) int64, each sentence ends with EOS, or (B, S, n) float32, each sequence of vectors ends with a
    vector of zeros; source_keep: (B, S) bool, True where a token stands.
    inputs: (B, T) int64, BOS and the target without its EOS; labels: (B, T) int64, the target with its EOS;
    target_keep: (B, T) bool, True where `labels` holds a token. target_tokens: the number of True in target_keep.
    rows: the pairs' indices in the corpus.
    """

    source: Tensor
    source_keep: Tensor
    inputs: Tensor
    labels: Tensor
    target_keep: Tensor
    target_tokens: int
    rows: tuple[int, ...]

    @property
    def task(self) -> str:
        """Which of several tasks it is of; here there is one only."""
        return ""

    @property
    def reads(self) -> tuple[Tensor, Tensor, Tensor]:
        """What a model reads of it: the source, where it has tokens, and what the target is predicted from."""
        return self.source, self.source_keep, self.inputs

    def twice(self) -> "Batch":
        """All pairs, then all of them again."""
        doubled = self._mapped(lambda tensor: torch.cat([tensor, tensor]))
        return replace(doubled, target_tokens=2 * self.target_tokens, rows=2 * self.rows)

    def to(self, device: torch.device) -> "Batch":
        """The same batch with its tensors on `device`; from pinned memory they go there while the CPU goes on."""
        return self._mapped(lambda tensor: tensor.to(device, non_blocking=True))

    def pinned(self) -> "Batch":
        """The same batch in page-locked memory, which a GPU reads by itself."""
        return self._mapped(torch.Tensor.pin_memory)

    def _mapped(self, function: Callable[[Tensor], Tensor]) -> "Batch":
        names = ("source", "source_keep", "inputs", "labels", "target_keep")
        tensors: dict[str, Any] = {name: function(getattr(self, name)) for name in names}
        return replace(self, **tensors)

    @property
    def target_places(self) -> Tensor:
        """Where a target token stands: (B, T) bool, or (target_tokens,) int64, numbers of places counted row by row."""
        if self.target_keep.device.type == "cpu":
            return self.target_keep
        # a mask would make the CPU wait until the device has counted what is True in it
        return _places(self.target_keep, self.target_tokens)

    def at_targets(self, values: Tensor) -> Tensor:
        """(B, T, …) → (target_tokens, …): the values where a target token stands, row by row."""
        places = self.target_places
        return values[places] if places.dtype == torch.bool else values.flatten(0, 1).index_select(0, places)

    def cut(self, count: int) -> list["Batch"]:
        """`count` parts with about equally many pairs each, or as many parts as there are pairs."""
        ends = [len(self.rows) * part // count for part in range(count + 1)]
        return [self._part(slice(*rows)) for rows in pairwise(ends) if rows[0] < rows[1]]

    def _part(self, rows: slice) -> "Batch":
        source_width = int(self.source_keep[rows].sum(1).max())
        target_width = int(self.target_keep[rows].sum(1).max())
        return Batch(
            source=self.source[rows, :source_width],
            source_keep=self.source_keep[rows, :source_width],
            inputs=self.inputs[rows, :target_width],
            labels=self.labels[rows, :target_width],
            target_keep=self.target_keep[rows, :target_width],
            target_tokens=int(self.target_keep[rows].sum()),
            rows=self.rows[rows],
        )


def _places(keep: Tensor, count: int) -> Tensor:
    """(count,) int64: where `keep`, flattened, is True, which is so often."""
    return torch.argsort(~keep.flatten(), stable=True)[:count]


def pad(
    sentences: Sequence[Sequence[int] | NDArray[Any]] | Sentences,
    before: tuple[int, ...] = (),
    after: tuple[int, ...] = (),
) -> tuple[Tensor, Tensor]:
    """Stack id sequences, each with `before` and `after` added: ids (B, L) int64 and keep (B, L) bool.

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
    keep = columns < lengths + len(after)
    return torch.from_numpy(ids), torch.from_numpy(keep)


def collate(
    sources: Sequence[Sequence[int] | NDArray[Any]] | Sentences,
    targets: Sequence[Sequence[int] | NDArray[Any]] | Sentences,
    rows: Sequence[int],
) -> Batch:
    """A `Batch` of token ids that carry no special symbols yet."""
    if not isinstance(targets, Sentences):
        targets = Sentences.of(targets)
    source, source_keep = pad(sources, after=(EOS,))
    inputs, _ = pad(targets, before=(BOS,))
    labels, target_keep = pad(targets, after=(EOS,))
    return Batch(
        source=source,
        source_keep=source_keep,
        inputs=inputs,
        labels=labels,
        target_keep=target_keep,
        target_tokens=int(targets.lengths.sum()) + len(targets),
        rows=tuple(int(row) for row in rows),
    )
