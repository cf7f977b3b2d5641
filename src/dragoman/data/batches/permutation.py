"""`Permutation`: the numbers below n in a seeded random order, of which any part can be computed separately."""

import numpy as np
from numpy.typing import NDArray

TABLE = 1 << 18
"""Maximum size of permutations that are stored as a table."""

ROUNDS = 6
_MULTIPLIERS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_GAMMA = 0x9E3779B97F4A7C15


class Permutation:
    """A permutation of 0 … n - 1 that depends only on n and the key.

    Small permutations are stored as a table. A larger permutation is a Feistel network over the smallest square of a
    power of two that is at least n, with cycle walking (Black & Rogaway 2002, sections 3 and 4): values outside the
    range are encrypted again. According to Luby & Rackoff 1988, a network with four rounds of random functions is
    indistinguishable from a random permutation. This network has six rounds of splitmix64's finaliser (Steele et al.
    2014), which is not a cipher but passes the usual tests of random number generators.
    """

    def __init__(self, size: int, *key: int) -> None:
        """size: the number n. key: non-negative integers that seed the permutation."""
        self.size = size
        rng = np.random.default_rng(key)
        self._table = rng.permutation(size) if size <= TABLE else None
        self._half = np.uint64(((size - 1).bit_length() + 1) // 2)
        self._keys = rng.integers(0, 2**63, ROUNDS).tolist()

    def at(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers at these positions of the permutation."""
        if self._table is not None:
            return self._table[positions]
        numbers = self._encrypt(positions.astype(np.uint64))
        while len(outside := np.flatnonzero(numbers >= self.size)):
            numbers[outside] = self._encrypt(numbers[outside])
        return numbers.astype(np.int64)

    def _encrypt(self, numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
        half = self._half
        mask = np.uint64((1 << int(half)) - 1)
        left, right = numbers >> half, numbers & mask
        for key in self._keys:
            left, right = right, left ^ (hash_numbers(right, key) & mask)
        return (left << half) | right


def hash_numbers(numbers: NDArray[np.uint64], key: int) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each number: splitmix64's output at this position of the sequence with seed `key`."""
    value = (numbers + np.uint64(1)) * np.uint64(_GAMMA) + np.uint64(key)
    value = (value ^ (value >> np.uint64(30))) * _MULTIPLIERS[0]
    value = (value ^ (value >> np.uint64(27))) * _MULTIPLIERS[1]
    return value ^ (value >> np.uint64(31))
