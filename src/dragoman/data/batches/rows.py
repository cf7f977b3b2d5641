"""`PaddedRows`, the base class of all batches of padded rows."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any, Self

import torch
from torch import Tensor

from dragoman.base.packing import Packing


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
