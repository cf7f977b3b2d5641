"""`KeyValueCache`: keys and values of earlier tokens, with spare capacity for later tokens."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

_FIRST_CAPACITY = 64
"""Minimum number of positions in the first allocation."""


class Keys(NamedTuple):
    """Keys (B, kv_heads, S, ·), in the form prepared by the scorer, and values (B, kv_heads, S, d_v) of S positions."""

    keys: Tensor
    values: Tensor


@dataclass(frozen=True)
class KeyValueCache:
    """A cache of keys and values (R, h, capacity, ·), of which positions `first` to `end` − 1 are filled.

    in_place: whether later tokens are written into these tensors. Time is then the outermost dimension in memory, so
    that the filled part is contiguous. Beam search copies its cache after every token, which is fastest without spare
    capacity (docs/EXPERIMENTS.md).
    """

    keys: Tensor
    values: Tensor
    first: int
    end: int
    in_place: bool = True

    @property
    def length(self) -> int:
        """Number of filled positions."""
        return self.end - self.first

    @property
    def spare(self) -> int:
        """Number of free positions after `end`."""
        return self.keys.size(2) - self.end

    def read(self) -> Keys:
        """Return the filled part, (R, h, length, ·), as views."""
        length = self.end - self.first
        if length == self.keys.size(2):
            return Keys(self.keys, self.values)
        return Keys(self.keys.narrow(2, self.first, length), self.values.narrow(2, self.first, length))

    def last(self, count: int) -> "KeyValueCache":
        """Return a cache of at most the last `count` positions.

        Without spare capacity, they are copied, because a view would keep the memory of the whole tensor allocated.
        """
        cut = KeyValueCache(self.keys, self.values, max(self.first, self.end - count), self.end, self.in_place)
        if cut.first == 0 or cut.spare:
            return cut
        keys, values = cut.read()
        return KeyValueCache(keys.contiguous(), values.contiguous(), 0, cut.length, self.in_place)

    def reorder(self, rows: Tensor, beam_size: int) -> "KeyValueCache":
        """Return the cache of the hypotheses with indices `rows` (R',) int64.

        Fewer rows than before mean that finished sentences are removed. Otherwise, a beam is expanded or reordered.
        """
        keys, values = self.read()
        if self.in_place and len(rows) < len(keys) and self.spare:
            return self.reallocate(self.length + self.spare, rows)
        in_place = self.in_place and len(rows) < len(keys)
        return KeyValueCache(keys.index_select(0, rows), values.index_select(0, rows), 0, self.length, in_place)

    def reallocate(self, capacity: int, rows: Tensor | None = None) -> "KeyValueCache":
        """Return a copy with space for `capacity` positions. rows: indices of the rows to copy; None: all rows."""
        keys, values = (_copy_positions(tensor, capacity, rows) for tensor in self.read())
        return KeyValueCache(keys, values, 0, self.length)


def extend_cache(cache: KeyValueCache | None, new: Keys, capacity: int | None) -> KeyValueCache:
    """Return the cache extended by T tokens, with keys and values (R, h, T, ·).

    The tokens are written in place if there is spare capacity and no gradient is required.

    capacity: maximum number of positions. A small capacity is allocated at once. For a large one, the allocation is
    doubled whenever it is full, because most texts are much shorter than the limit. None: unknown, so that no space is
    reserved.
    """
    count = new.keys.size(2)
    in_place = cache is None or cache.in_place
    if capacity is None or not in_place or new.keys.requires_grad or new.values.requires_grad:
        if cache is not None:
            keys, values = cache.read()
            new = Keys(torch.cat((keys, new.keys), 2), torch.cat((values, new.values), 2))
        return KeyValueCache(new.keys, new.values, 0, new.keys.size(2), in_place)
    if cache is None:
        return KeyValueCache(new.keys, new.values, 0, count).reallocate(_capacity(count, capacity))
    if cache.spare < count:
        cache = cache.reallocate(_capacity(cache.length + count, capacity))
    cache.keys.narrow(2, cache.end, count).copy_(new.keys)
    cache.values.narrow(2, cache.end, count).copy_(new.values)
    return KeyValueCache(cache.keys, cache.values, cache.first, cache.end + count)


def _capacity(length: int, capacity: int) -> int:
    return max(length, min(capacity, max(_FIRST_CAPACITY, 2 * length)))


def _copy_positions(tensor: Tensor, capacity: int, rows: Tensor | None) -> Tensor:
    """Copy (R, h, t, ·) into the first t positions of a new tensor (R', h, capacity, ·).

    Time is the outermost dimension in memory.
    """
    count, heads, length, width = tensor.shape
    copy = tensor.new_empty((capacity, count if rows is None else len(rows), heads, width))
    source, filled = tensor.permute(2, 0, 1, 3), copy.narrow(0, 0, length)
    if rows is None:
        filled.copy_(source)
    else:
        torch.index_select(source, 1, rows, out=filled)
    return copy.permute(1, 2, 0, 3)
