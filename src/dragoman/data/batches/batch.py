"""Padded batches of sentence pairs, or of blocks of plain text, for models and objectives."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.base.packing import Packing
from dragoman.data.batches.shapes import enlarge, few_shapes
from dragoman.data.dataset import Sentences
from dragoman.text.symbols import BOS, EOS, PAD


class PaddedRows:
    """Base class of frozen dataclasses whose tensors have one row per text.

    rows: indices of the rows in the dataset.
    """

    rows: tuple[int, ...]

    def to(self, device: torch.device) -> Self:
        """Return the batch on `device`. From pinned memory, the copy is asynchronous."""
        return self.map_tensors(lambda tensor: tensor.to(device, non_blocking=True))

    def pin_memory(self) -> Self:
        """Return the batch in page-locked memory, for asynchronous copies to a GPU."""
        return self.map_tensors(torch.Tensor.pin_memory)

    def split(self, count: int) -> list[Self]:
        """Split into `count` parts with about equally many rows, or into single rows if there are fewer."""
        ends = [len(self.rows) * part // count for part in range(count + 1)]
        return [self._part(slice(*rows)) for rows in pairwise(ends) if rows[0] < rows[1]]

    def map_tensors(
        self, function: Callable[[Tensor], Tensor], on_packing: Callable[[Packing], Packing] | None = None
    ) -> Self:
        """Apply `function` to all tensors. on_packing: applied to packings instead; None: their tensors are mapped."""
        changed: dict[str, Any] = {}
        for name, value in ((each.name, getattr(self, each.name)) for each in fields(self)):  # type: ignore[arg-type]
            if isinstance(value, Tensor):
                changed[name] = function(value)
            elif isinstance(value, Packing):
                changed[name] = value.map_tensors(function) if on_packing is None else on_packing(value)
        return replace(self, **changed)  # type: ignore[type-var]

    @abstractmethod
    def _part(self, rows: slice) -> Self:
        """Return the batch of some of the rows, without columns that are padding in all of them."""


@dataclass(frozen=True)
class TargetBatch(PaddedRows):
    """Targets of B rows, padded on the right, for models that generate text.

    inputs: (B, T) int64, the token before each label. labels: (B, T) int64, the tokens to predict. target_mask: (B, T)
    bool, True for labels that are not padding. target_tokens: number of True values in target_mask. rows: indices of
    the rows in the dataset. packing: with which the model packs the states of the targets; None: they are padded.
    """

    inputs: Tensor
    labels: Tensor
    target_mask: Tensor
    target_tokens: int
    rows: tuple[int, ...]
    packing: Packing | None = field(default=None, kw_only=True)

    @property
    def task(self) -> str:
        """Name of the task of the batch. Empty if there is only one task."""
        return ""

    @property
    def model_inputs(self) -> tuple[Any, ...]:
        """The arguments of the model: the target inputs, and their packing, if any."""
        return (self.inputs,) if self.packing is None else (self.inputs, self.packing)

    def with_packing(self, size: int = 0) -> Self:
        """Return the batch with packings, for models that pack. size: see `Packing.of`."""
        return replace(self, packing=Packing.of(self.target_mask.numpy(), size))

    def with_few_shapes(self, longest: Sequence[int], spare_row: bool) -> Self:
        """Return the batch with further padding, so that there are few shapes of batches.

        longest, spare_row: see `few_shapes`; `longest` has one number for each side. Only models that pack support rows
        of padding.
        """
        shape = few_shapes(self.target_mask, longest[-1], spare_row)
        return replace(
            self,
            inputs=enlarge(self.inputs, shape),
            labels=enlarge(self.labels, shape),
            target_mask=enlarge(self.target_mask, shape, value=False),
        )

    def split(self, count: int) -> list[Self]:
        """See `PaddedRows.split`. The parts of a packed batch are packed."""
        parts = super().split(count)
        return parts if self.packing is None else [part.with_packing() for part in parts]

    def repeat_rows(self) -> Self:
        """Return all rows twice, one copy after the other."""
        doubled = self.map_tensors(lambda tensor: torch.cat([tensor, tensor]), Packing.repeated)
        return replace(doubled, target_tokens=2 * self.target_tokens, rows=2 * self.rows)

    @property
    def target_positions(self) -> Tensor | Packing:
        """Positions of the target tokens: a (B, T) bool mask, or (target_tokens,) int64 indices into the flat batch.

        Those of a packed batch are its packing.
        """
        if self.packing is not None:
            return self.packing
        if self.target_mask.device.type == "cpu":
            return self.target_mask
        # Indexing with a mask would block the CPU until the device has counted the True values.
        return _flat_positions(self.target_mask, self.target_tokens)

    def select_targets(self, values: Tensor) -> Tensor:
        """Return the values at target tokens, row by row: (B, T, …) → (target_tokens, …)."""
        positions = self.target_positions
        if isinstance(positions, Packing):
            positions = positions.padded[: positions.count]
        return values[positions] if positions.dtype == torch.bool else values.flatten(0, 1).index_select(0, positions)

    def _part(self, rows: slice) -> Self:
        width = int(self.target_mask[rows].sum(1).max())
        return replace(
            self,
            inputs=self.inputs[rows, :width],
            labels=self.labels[rows, :width],
            target_mask=self.target_mask[rows, :width],
            target_tokens=int(self.target_mask[rows].sum()),
            rows=self.rows[rows],
            packing=None,
        )


def _flat_positions(mask: Tensor, count: int) -> Tensor:
    """Return the indices of the `count` True values in the flattened mask, (count,) int64."""
    return torch.argsort(~mask.flatten(), stable=True)[:count]


@dataclass(frozen=True)
class Batch(TargetBatch):
    """B sentence pairs, padded on the right.

    source: (B, S) int64, where each sentence ends with EOS, or (B, S, n) float32, where each sequence of vectors ends
    with a vector of zeros. source_mask: (B, S) bool, False at padding. source_packing: as `packing`, for the sources.
    For other fields, see `TargetBatch`: `inputs` is BOS followed by the target, and `labels` is the target followed by
    EOS.
    """

    source: Tensor
    source_mask: Tensor
    source_packing: Packing | None = field(default=None, kw_only=True)

    @property
    def model_inputs(self) -> tuple[Any, ...]:
        """The arguments of the model: source, source mask, target inputs, and the packings of both sides, if any."""
        inputs = self.source, self.source_mask, self.inputs
        return inputs if self.packing is None else (*inputs, self.source_packing, self.packing)

    def with_packing(self, size: int = 0) -> Self:
        """See `TargetBatch.with_packing`. Attention needs a source token in every row, including rows of padding."""
        mask = self.source_mask.clone()
        mask[len(self.rows) :, 0] = True
        packing = Packing.of(self.source_mask.numpy(), size)
        return replace(super().with_packing(size), source_mask=mask, source_packing=packing)

    def with_few_shapes(self, longest: Sequence[int], spare_row: bool) -> Self:
        """See `TargetBatch.with_few_shapes`."""
        shape = few_shapes(self.source_mask, longest[0], spare_row)
        source, mask = enlarge(self.source, shape), enlarge(self.source_mask, shape, value=False)
        return replace(super().with_few_shapes(longest, spare_row), source=source, source_mask=mask)

    def _part(self, rows: slice) -> Self:
        width = int(self.source_mask[rows].sum(1).max())
        source, source_mask = self.source[rows, :width], self.source_mask[rows, :width]
        return replace(super()._part(rows), source=source, source_mask=source_mask, source_packing=None)


def pad(
    sentences: Sequence[Sequence[int] | NDArray[Any]] | Sentences,
    before: tuple[int, ...] = (),
    after: tuple[int, ...] = (),
) -> tuple[Tensor, Tensor]:
    """Add `before` and `after` to each id sequence, and pad. Returns ids (B, L) int64 and a mask (B, L) bool.

    Sequences of vectors (L, n) become (B, L, n) float32, with vectors of zeros for special symbols and padding, and
    tokens with factors (L, 1 + K) become (B, L, 1 + K) int64.
    """
    if not isinstance(sentences, Sentences):
        sentences = Sentences.of(sentences)
    lengths = sentences.lengths[:, None] + len(before)
    columns = np.arange(int(lengths.max()) + len(after))
    if inner := sentences.ids.shape[1:]:
        is_factored = np.issubdtype(sentences.ids.dtype, np.integer)
        ids = np.zeros((len(sentences), len(columns), *inner), dtype=np.int64 if is_factored else np.float32)
    else:
        ids = np.full((len(sentences), len(columns)), PAD, dtype=np.int64)
        ids[:, : len(before)] = before
        for offset, symbol in enumerate(after):
            np.put_along_axis(ids, lengths + offset, symbol, axis=1)
    ids[(columns >= len(before)) & (columns < lengths)] = sentences.ids
    mask = columns < lengths + len(after)
    return torch.from_numpy(ids), torch.from_numpy(mask)


def collate(
    sources: Sequence[Sequence[int] | NDArray[Any]] | Sentences,
    targets: Sequence[Sequence[int] | NDArray[Any]] | Sentences,
    rows: Sequence[int],
) -> Batch:
    """Return a `Batch` of token ids without special symbols, which are added. rows: indices of the pairs."""
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


@dataclass(frozen=True)
class TextBatch(TargetBatch):
    """B blocks of documents, padded on the right. No row spans two documents.

    A row starts a document if its first input is BOS, and ends a document if its last label is EOS. The first input of
    every other row is the last label of the preceding block.
    """


def collate_text(blocks: Sequence[Sequence[int] | NDArray[Any]] | Sentences, rows: Sequence[int]) -> TextBatch:
    """Return a `TextBatch` from n + 1 ids per row with n labels, as returned by `TextDataset.take` and
    `document_blocks`."""
    ids, mask = pad(blocks)
    target_mask = mask[:, 1:].contiguous()
    return TextBatch(
        inputs=torch.where(target_mask, ids[:, :-1], PAD),
        labels=ids[:, 1:].contiguous(),
        target_mask=target_mask,
        target_tokens=int(target_mask.sum()),
        rows=tuple(int(row) for row in rows),
    )


def document_blocks(document: Sequence[int], block: int) -> list[list[int]]:
    """Divide the ids of a document, without special symbols, into blocks of at most `block` labels.

    See `TextDataset`.
    """
    ids = [BOS, *document, EOS]
    return [ids[start : start + block + 1] for start in range(0, len(ids) - 1, block)]
