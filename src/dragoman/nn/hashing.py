"""Hashes of sequences of numbers, computed for whole tensors: features that are too many for a table of their own."""

from torch import Tensor

_FACTOR, _GOLDEN, _BITS = 1_000_003, 0x9E3779B1, 30
"""Factors of the hash function, and the number of bits of a hash, so that a product with a factor fits in int64."""


def extend_hashes(hashes: Tensor, values: Tensor) -> Tensor:
    """Return the hashes int64 of sequences that are longer by one number, for hashes and numbers of the same shape."""
    return (hashes * _FACTOR + values + 1) & ((1 << _BITS) - 1)


def hash_buckets(hashes: Tensor, buckets: int) -> Tensor:
    """Return a number from 0 to `buckets` − 1 for each hash int64 (Weinberger et al. 2009)."""
    return ((hashes * _GOLDEN) >> (_BITS // 2)) % buckets
