"""`BatchShapes`: the shapes of a run's batches, of which a GPU should compute few, and whether they are packed."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dragoman.text.symbols import PAD

_COLUMNS = 8
"""Numbers of columns are rounded up to a multiple of this number."""


@dataclass(frozen=True)
class BatchShapes:
    """The shapes of batches of sentence pairs or blocks.

    longest: the number of tokens of the longest example of each side, if shapes are rounded; no columns are added
    beyond it, because a model may have no more positions. None: shapes are not rounded. packed: usual number of packed
    rows per side (`Packing.of`), for batches that are packed; None: they are padded.
    """

    longest: tuple[int, ...] | None = None
    packed: int | None = None

    def apply(self, batch: Any) -> Any:
        """Return a batch with these shapes."""
        if self.longest is not None:
            batch = batch.with_few_shapes(self.longest, spare_row=self.packed is not None)
        return batch if self.packed is None else batch.with_packing(self.packed)


PADDED = BatchShapes()
"""Batches without further padding."""


def few_shapes(mask: Tensor, longest: int, spare_row: bool) -> tuple[int, int]:
    """Return the shape (B, L) of a batch with mask (B', L'), rounded up so that there are few shapes.

    L is a multiple of 8, or at most the larger of L' and `longest`. spare_row: whether B is rounded up to about four
    significant bits, with at least one row of padding, or is B', for batches planned with few numbers of rows.
    """
    rows, length = mask.shape
    length = max(length, min(round_up_columns(length), longest))
    if not spare_row:
        return rows, length
    step = max(8, 1 << max(0, (rows + 1).bit_length() - 4))
    return -(-(rows + 1) // step) * step, length


def round_up_columns(length: Any) -> Any:
    """Return a number of columns, or an array of them, rounded up so that there are few."""
    return -(-length // _COLUMNS) * _COLUMNS


def round_down_rows(rows: int) -> int:
    """Return a number of rows, rounded down to three significant bits, so that there are few."""
    step = 1 << max(0, rows.bit_length() - 3)
    return rows // step * step


def enlarge(tensor: Tensor, shape: tuple[int, int], value: float = PAD) -> Tensor:
    """Fill (B', L', …) up to (B, L, …) with a value."""
    rows, length = shape[0] - tensor.size(0), shape[1] - tensor.size(1)
    inner = [0, 0] * (tensor.dim() - 2)
    return torch.nn.functional.pad(tensor, (*inner, 0, length, 0, rows), value=value)
