"""`KeyValueCache`: keys and values of the tokens that were read, with room for those that follow."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

_FEW = 64
"""Places that are made at once, however few tokens there are."""


class Keys(NamedTuple):
    """Of S places: keys as the scorer prepares them, (B, h, S, ·), and values (B, h, S, d_v)."""

    keys: Tensor
    values: Tensor


@dataclass(frozen=True)
class KeyValueCache:
    """keys and values: (R, h, room, ·), of which the places from `first` to before `end` are held.

    in_place: whether tokens that follow are written into these tensors. Time stands first in memory then, so that what
    is held lies in one piece. Not so in a beam: its cache is copied after every token anyway, and copies without room
    are the fastest there (docs/EXPERIMENTS.md).
    """

    keys: Tensor
    values: Tensor
    first: int
    end: int
    in_place: bool = True

    @property
    def length(self) -> int:
        """Places held."""
        return self.end - self.first

    @property
    def room(self) -> int:
        """Places behind those that are held."""
        return self.keys.size(2) - self.end

    def read(self) -> Keys:
        """What is held, (R, h, length, ·), not copied."""
        length = self.end - self.first
        if length == self.keys.size(2):
            return Keys(self.keys, self.values)
        return Keys(self.keys.narrow(2, self.first, length), self.values.narrow(2, self.first, length))

    def last(self, count: int) -> "KeyValueCache":
        """The last `count` places at most; without room they are copied, as a part of a tensor would keep all of it."""
        cut = KeyValueCache(self.keys, self.values, max(self.first, self.end - count), self.end, self.in_place)
        if cut.first == 0 or cut.room:
            return cut
        keys, values = cut.read()
        return KeyValueCache(keys.contiguous(), values.contiguous(), 0, cut.length, self.in_place)

    def reorder(self, rows: Tensor, beam_size: int) -> "KeyValueCache":
        """The same for hypotheses `rows` (R',) int64.

        Fewer than before: some texts are complete, and the others go on as they did. As many or more: a beam.
        """
        keys, values = self.read()
        if self.in_place and len(rows) < len(keys) and self.room:
            return self.moved(self.length + self.room, rows)
        in_place = self.in_place and len(rows) < len(keys)
        return KeyValueCache(keys.index_select(0, rows), values.index_select(0, rows), 0, self.length, in_place)

    def moved(self, places: int, rows: Tensor | None = None) -> "KeyValueCache":
        """What is held, of all rows or of these, in tensors of so many places."""
        keys, values = (_copied(held, places, rows) for held in self.read())
        return KeyValueCache(keys, values, 0, self.length)


def extended(cache: KeyValueCache | None, new: Keys, capacity: int | None) -> KeyValueCache:
    """What is held once T more tokens are, keys and values (R, h, T, ·); written in place where there is room.

    capacity: places that will be needed at most, for which room is made: at once where they are few, else twice as much
    whenever there is none left, because most texts end long before their limit. None: unknown, and no room is made.
    Where gradients flow, nothing is written in place.
    """
    count = new.keys.size(2)
    in_place = cache is None or cache.in_place
    if capacity is None or not in_place or new.keys.requires_grad or new.values.requires_grad:
        if cache is not None:
            keys, values = cache.read()
            new = Keys(torch.cat((keys, new.keys), 2), torch.cat((values, new.values), 2))
        return KeyValueCache(new.keys, new.values, 0, new.keys.size(2), in_place)
    if cache is None:
        return KeyValueCache(new.keys, new.values, 0, count).moved(_places(count, capacity))
    if cache.room < count:
        cache = cache.moved(_places(cache.length + count, capacity))
    cache.keys.narrow(2, cache.end, count).copy_(new.keys)
    cache.values.narrow(2, cache.end, count).copy_(new.values)
    return KeyValueCache(cache.keys, cache.values, cache.first, cache.end + count)


def _places(length: int, capacity: int) -> int:
    return max(length, min(capacity, max(_FEW, 2 * length)))


def _copied(held: Tensor, places: int, rows: Tensor | None) -> Tensor:
    """(R, h, t, ·) → (R', h, places, ·), time first in memory, of which the first t places are filled."""
    count, heads, length, width = held.shape
    copy = held.new_empty((places, count if rows is None else len(rows), heads, width))
    source, filled = held.permute(2, 0, 1, 3), copy.narrow(0, 0, length)
    if rows is None:
        filled.copy_(source)
    else:
        torch.index_select(source, 1, rows, out=filled)
    return copy.permute(1, 2, 0, 3)
