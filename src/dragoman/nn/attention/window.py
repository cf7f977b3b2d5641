"""Sliding-window attention: soft attention over neighbouring tokens, computed in blocks instead of over all pairs."""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from dragoman.nn.attention.cache import Keys, KeyValueCache
from dragoman.nn.attention.interface import Attention, AttentionSizes
from dragoman.nn.attention.recording import recorder
from dragoman.nn.attention.soft import Queries, SoftAttention, SoftAttentionConfig
from dragoman.nn.mask import CausalSpan, Mask
from dragoman.nn.positions.scheme import PositionScheme

# Small blocks require many small products. In large blocks, many of the compared pairs lie outside the window.
_SMALLEST_BLOCK, _LARGEST_BLOCK = 32, 256


class WindowAttentionConfig(SoftAttentionConfig):
    """Sliding-window attention: soft attention within a window around each token (Beltagy et al. 2020, section 3.1).

    In an encoder, token t attends to the keys s with |t − s| ≤ window. In a decoder, it attends to t − window < s ≤ t,
    so that the cache contains window − 1 tokens. Time and memory are proportional to length · window. The receptive
    field of N layers is N · window tokens on each side. Everything else is as in soft attention.

    YAML: `encoder: {attention: {kind: window, window: 64}}`
    """

    masks_pairs: ClassVar[bool] = False

    kind: Literal["window"] = "window"  # type: ignore[assignment]
    window: int = Field(
        128,
        ge=1,
        description="In an encoder, the number of tokens attended to on each side. In a decoder, the number of tokens "
        "attended to, including the current token.",
    )

    def build(self, sizes: AttentionSizes, positions: PositionScheme | None = None) -> Attention:
        """Build the module. positions: the position scheme. Raises ConfigError for incompatible widths."""
        return WindowAttention(self, sizes, positions)


class WindowAttention(SoftAttention):
    """Soft attention within a band around the diagonal. Built by `WindowAttentionConfig.build`.

    The sequence is divided into blocks, which become the rows of a batch. The queries of a block are compared with the
    keys of the block and of the `window` tokens around it. While attention weights are being recorded, the whole
    sequence is one block, so that the weights have shape (B, h, T, S).
    """

    def __init__(self, config: WindowAttentionConfig, sizes: AttentionSizes, positions: PositionScheme | None) -> None:
        super().__init__(config, sizes, positions)
        self.window = config.window
        self.block = min(max(1 << (self.window - 1).bit_length(), _SMALLEST_BLOCK), _LARGEST_BLOCK)

    def cast(self, states: Tensor) -> Tensor:
        """Return the states unchanged.

        Each product casts them separately, so that their gradients are summed in the dtype of the states.
        """
        return states

    def attend_full(self, queries: Queries, keys: Keys, padding: Mask) -> Tensor:
        """Attend to the window on both sides of each token: (B, S, output_width).

        Raises ConfigError for a graph mask.
        """
        return self._attend_band(queries, keys, self.window, self.window, padding.token_mask("window"))

    def attend_causal(self, queries: Queries, keys: Keys, causal: CausalSpan) -> Tensor:
        """Attend to the window that ends at each token: (R, T, output_width)."""
        result = self._attend_band(queries, keys, self.window - 1, 0, causal.token_mask(keys.keys.size(2)))
        if (recorded := recorder()) is not None:  # tokens that are no longer in the cache have weight zero
            calls = recorded[self]
            calls[-1] = functional.pad(calls[-1], (causal.start + causal.new - keys.keys.size(2), 0))
        return result

    def retain(self, cache: KeyValueCache) -> KeyValueCache:
        """Return a cache of the last window − 1 positions."""
        return cache.last(self.window - 1)

    def capacity(self, causal: CausalSpan) -> int | None:
        """Return a capacity of at most two windows.

        When both are full, the last window is copied to the start of a new cache.
        """
        return None if causal.capacity is None else min(causal.capacity, 2 * self.window)

    def _attend_band(self, queries: Queries, keys: Keys, left: int, right: int, valid: Tensor | None) -> Tensor:
        """Attend from queries (B, h, T, ·) to the keys from `left` before to `right` after each query.

        keys: (B, h, c + T, ·), where the c ≤ `left` keys before the first query come from the cache. valid: (B, c + T)
        bool, False at padding; None if there is no padding.
        """
        vectors, rows, _, query_mask, packing = queries
        length, key_count = vectors.size(2), keys.keys.size(2)
        before = key_count - length
        left, right = min(left, key_count - 1), min(right, key_count - 1)  # there are no keys beyond the ends
        if length < self.block or recorder() is not None:
            mask = None
            if valid is not None or length > 1:
                band = _band(length, key_count, before, left=left, right=right, device=vectors.device)
                mask = Mask(band if valid is None else band & valid[:, None, None, :])
            return self.attend(queries._replace(start=before), keys, mask)
        size = self.block
        count = -(-length // size)
        if valid is None:
            valid = torch.ones(rows, key_count, dtype=torch.bool, device=vectors.device)
        margin = left - before
        valid = _blocks(valid[:, None, :, None], count, size, margin, left + right)[:, :, None, :, 0]
        mask = Mask(_band(size, left + size + right, left, left=left, right=right, device=vectors.device) & valid)
        if query_mask is not None:
            query_mask = _blocks(query_mask[:, None, :, None], count, size, 0, 0)[:, 0, :, 0]
        blocks = Queries(_blocks(vectors, count, size, 0, 0), rows * count, left, query_mask)
        around = Keys(*(_blocks(each, count, size, margin, left + right) for each in keys))
        result = self.attend(blocks, around, mask).reshape(rows, count * size, -1)[:, :length]
        return result if packing is None else packing.pack(result)


def _band(queries: int, keys: int, before: int, *, left: int, right: int, device: torch.device) -> Tensor:
    """Return the mask (1, 1, queries, keys) bool of keys within the window. The first query is at key `before`."""
    offsets = torch.arange(keys, device=device) - torch.arange(before, before + queries, device=device)[:, None]
    return ((offsets >= -left) & (offsets <= right))[None, None]


def _blocks(vectors: Tensor, count: int, size: int, margin: int, overlap: int) -> Tensor:
    """Divide (B, h, L, w) into `count` overlapping blocks with stride `size`: (B · count, h, size + overlap, w).

    The first block starts `margin` positions before the first vector. Positions beyond either end are zero.
    """
    rows, heads, length, width = vectors.shape
    pieces = -(-(size + overlap) // size)
    padded = functional.pad(vectors, (0, 0, margin, (count + pieces - 1) * size - margin - length))
    # Slices are concatenated instead of gathered, so that the gradient is a sum of slices instead of a scatter.
    parts = [
        padded[:, :, piece * size : (piece + count) * size]
        .unflatten(2, (count, size))  # type: ignore[no-untyped-call]
        .transpose(1, 2)[:, :, :, : size + overlap - piece * size]
        for piece in range(pieces)
    ]
    return torch.cat(parts, 3).reshape(rows * count, heads, size + overlap, width)
