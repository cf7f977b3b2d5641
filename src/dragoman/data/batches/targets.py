"""`TargetBatch`: padded targets as every model that writes text reads them, whatever else stands beside them."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Self

import torch
from torch import Tensor


@dataclass(frozen=True)
class TargetBatch:
    """B rows, padded on the right.

    inputs: (B, T) int64, what stands before each label; labels: (B, T) int64, what is to be predicted; target_mask:
    (B, T) bool, True where `labels` holds a token. target_tokens: the number of True in target_mask. rows: their
    indices in the corpus.
    """

    inputs: Tensor
    labels: Tensor
    target_mask: Tensor
    target_tokens: int
    rows: tuple[int, ...]

    @property
    def task(self) -> str:
        """Which of several tasks it is of; here there is one only."""
        return ""

    @property
    def reads(self) -> tuple[Tensor, ...]:
        """What a model reads of it."""
        return (self.inputs,)

    def twice(self) -> Self:
        """All rows, then all of them again."""
        doubled = self._mapped(lambda tensor: torch.cat([tensor, tensor]))
        return replace(doubled, target_tokens=2 * self.target_tokens, rows=2 * self.rows)

    def to(self, device: torch.device) -> Self:
        """The same batch with its tensors on `device`; from pinned memory they go there while the CPU goes on."""
        return self._mapped(lambda tensor: tensor.to(device, non_blocking=True))

    def pinned(self) -> Self:
        """The same batch in page-locked memory, which a GPU reads by itself."""
        return self._mapped(torch.Tensor.pin_memory)

    def _mapped(self, function: Callable[[Tensor], Tensor]) -> Self:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        tensors: dict[str, Any] = {name: function(value) for name, value in values.items() if isinstance(value, Tensor)}
        return replace(self, **tensors)

    @property
    def target_places(self) -> Tensor:
        """Where a target token stands: (B, T) bool, or (target_tokens,) int64, numbers of places counted row by row."""
        if self.target_mask.device.type == "cpu":
            return self.target_mask
        # a mask would make the CPU wait until the device has counted what is True in it
        return _places(self.target_mask, self.target_tokens)

    def at_targets(self, values: Tensor) -> Tensor:
        """(B, T, …) → (target_tokens, …): the values where a target token stands, row by row."""
        places = self.target_places
        return values[places] if places.dtype == torch.bool else values.flatten(0, 1).index_select(0, places)

    def cut(self, count: int) -> list[Self]:
        """`count` parts with about equally many rows each, or as many parts as there are rows."""
        ends = [len(self.rows) * part // count for part in range(count + 1)]
        return [self._part(slice(*rows)) for rows in pairwise(ends) if rows[0] < rows[1]]

    def _part(self, rows: slice) -> Self:
        width = int(self.target_mask[rows].sum(1).max())
        return replace(
            self,
            inputs=self.inputs[rows, :width],
            labels=self.labels[rows, :width],
            target_mask=self.target_mask[rows, :width],
            target_tokens=int(self.target_mask[rows].sum()),
            rows=self.rows[rows],
        )


def _places(mask: Tensor, count: int) -> Tensor:
    """(count,) int64: where `mask`, flattened, is True, which is so often."""
    return torch.argsort(~mask.flatten(), stable=True)[:count]
