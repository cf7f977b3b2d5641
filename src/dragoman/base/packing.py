"""`Packing`: the rows of the tokens of a padded batch if its sentences follow each other without padding."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

MULTIPLE = 32
"""Packed states are filled up to a multiple of this number of rows, so that matrix products have few shapes."""


@dataclass(frozen=True)
class Packing:
    """The rows of the tokens of B sentences, padded to (B, L), in packed states (1, N, d).

    Packed states contain the sentences one after the other, followed by filler, so that position-wise layers compute no
    padding. Attention compares only tokens of the same sentence, so it unpacks queries, keys and values, computes as
    for padded states, and packs its results.

    shape: (B, L). count: number of tokens. padded: (N,) int64, the position of each packed token in the flattened
    padded batch; for filler, a position of padding, if any. packed: (B·L,) int64, the row of each position of the
    padded batch in the packed states; for padding, a row of filler. tokens: (1, N) bool, False at filler. starts: (B +
    1,) int32, the first row of each sentence, and the number of rows of all of them.
    """

    shape: tuple[int, int]
    count: int
    padded: Tensor
    packed: Tensor
    tokens: Tensor
    starts: Tensor

    @classmethod
    def of(cls, mask: NDArray[np.bool_], size: int = 0) -> Self:
        """Return the packing of a padded batch. mask: (B, L), False at padding.

        size: usual number N of packed rows, so that batches have few shapes; a half, a quarter and so on are used if
        they suffice. N is rounded up to a multiple of `MULTIPLE`, and there is filler if there is padding.
        """
        real = np.flatnonzero(mask)
        count = len(real)
        packed = np.full(mask.size, count, dtype=np.int64)
        packed[real] = np.arange(count)
        needed = count + (count < mask.size)
        while size // 2 >= needed:
            size //= 2
        size = _round_up(max(size, needed))
        padded = np.pad(real, (0, size - count), constant_values=int(mask.argmin()))
        rows, columns = mask.shape
        starts = np.zeros(rows + 1, np.int32)
        mask.sum(1).cumsum(out=starts[1:])
        tensors = (torch.from_numpy(each) for each in (padded, packed, np.arange(size)[None] < count, starts))
        return cls((rows, columns), count, *tensors)

    @property
    def columns(self) -> Tensor:
        """The position in its sentence of each packed token: (N,) int64."""
        return self.padded % self.shape[1]

    def map_tensors(self, function: Callable[[Tensor], Tensor]) -> Self:
        """Return the packing with a function applied to its tensors."""
        return replace(
            self,
            padded=function(self.padded),
            packed=function(self.packed),
            tokens=function(self.tokens),
            starts=function(self.starts),
        )

    def repeated(self) -> Self:
        """Return the packing of a batch that contains all sentences twice, one copy after the other."""
        count, positions = self.count, self.packed.numel()
        size = _round_up(2 * count + (count < positions))
        padding = self.padded[count:][:1] if count < positions else self.padded[:1]
        first, filler = self.padded[:count], padding.expand(size - 2 * count)
        rows = [torch.where(self.packed < count, self.packed + copy * count, 2 * count) for copy in (0, 1)]
        return type(self)(
            (2 * self.shape[0], self.shape[1]),
            2 * count,
            torch.cat([first, first + positions, filler]),
            torch.cat(rows),
            (torch.arange(size, device=first.device) < 2 * count)[None],
            torch.cat([self.starts, self.starts[1:] + count]),
        )

    def pack(self, states: Tensor) -> Tensor:
        """Return the states (B, L, w) of all tokens as (1, N, w). Filler repeats the states of some position."""
        packed: Tensor = _Gather.apply(states.flatten(0, 1), self.padded, self.packed, None)  # type: ignore[no-untyped-call]
        return packed.unsqueeze(0)

    def unpack(self, states: Tensor) -> Tensor:
        """Return packed states (1, N, w) as (B, L, w). Padding repeats the states of filler."""
        # Without padding, filler repeats a token, whose gradient it must not have.
        tokens = self.count if self.count == self.packed.numel() else None
        unpacked: Tensor = _Gather.apply(states.squeeze(0), self.packed, self.padded, tokens)  # type: ignore[no-untyped-call]
        return unpacked.view(*self.shape, -1)

    def rows(self, positions: Tensor) -> Tensor:
        """Return the rows (n,) int64 of some positions in the packed states.

        positions: (B, L) bool with n True values, or (n,) int64 indices into the flattened padded batch.
        """
        return self.packed[positions.flatten()]


def _round_up(count: int) -> int:
    return -(-count // MULTIPLE) * MULTIPLE


class _Gather(torch.autograd.Function):
    """Gathers rows in both directions, because a scatter is several times as slow on a CPU.

    This is correct because the rows that are not tokens have no gradient: what layers compute for filler, and what
    attention computes for padding, is not used.
    """

    @staticmethod
    def forward(context: Any, states: Tensor, rows: Tensor, backward_rows: Tensor, tokens: int | None) -> Tensor:
        """Return the rows of states (n, w) at `rows`.

        backward_rows: for each row of the states, the row of the result from which its gradient comes. tokens: number
        of rows of the states that have a gradient; None: all.
        """
        context.rows, context.tokens = backward_rows, tokens
        return states.index_select(0, rows)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        result = gradient.index_select(0, context.rows)
        if context.tokens is not None:
            result[context.tokens :].zero_()
        return result, None, None, None
