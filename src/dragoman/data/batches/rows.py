"""`PaddedRows`, the base class of all batches of padded rows."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any, Self

import torch
from torch import Tensor


class PaddedRows:
    """Base class of frozen dataclasses whose tensors have one row per text.

    rows: indices of the rows in the dataset.
    """

    rows: tuple[int, ...]

    def to(self, device: torch.device) -> Self:
        """Return the batch on `device`. From pinned memory, the copy is asynchronous."""
        return self._map_tensors(lambda tensor: tensor.to(device, non_blocking=True))

    def pin_memory(self) -> Self:
        """Return the batch in page-locked memory, for asynchronous copies to a GPU."""
        return self._map_tensors(torch.Tensor.pin_memory)

    def split(self, count: int) -> list[Self]:
        """Split into `count` parts with about equally many rows, or into single rows if there are fewer."""
        ends = [len(self.rows) * part // count for part in range(count + 1)]
        return [self._part(slice(*rows)) for rows in pairwise(ends) if rows[0] < rows[1]]

    def _map_tensors(self, function: Callable[[Tensor], Tensor]) -> Self:
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        tensors: dict[str, Any] = {name: function(value) for name, value in values.items() if isinstance(value, Tensor)}
        return replace(self, **tensors)  # type: ignore[type-var]

    @abstractmethod
    def _part(self, rows: slice) -> Self:
        """Return the batch of some of the rows, without columns that are padding in all of them."""
