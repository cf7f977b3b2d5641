"""Sliding-window attention: soft attention over neighbouring tokens, computed in blocks, never over all pairs."""

from typing import Literal

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

# Small blocks make many small products; large ones compare many pairs that the window then masks.
_SMALLEST_BLOCK, _LARGEST_BLOCK = 32, 256


class WindowAttentionConfig(SoftAttentionConfig):
    """Soft attention of each token t to its neighbours (Beltagy et al. 2020, section 3.1, "sliding window").

    Encoder: the keys s with |t − s| ≤ window. Decoder: t − window < s ≤ t, so the cache holds window − 1 tokens. Time
    and memory are proportional to length · window; the receptive field of N layers is N · window tokens to a side.
    Everything else is as in soft attention.

    YAML: `encoder: {attention: {kind: window, window: 64}}`
    """

    kind: Literal["window"] = "window"  # type: ignore[assignment]
    window: int = Field(
        128,
        ge=1,
        description="In an encoder, the number of tokens attended to on each side; in a decoder, the number of tokens "
        "attended to, the current token included.",
    )

    def build(self, sizes: AttentionSizes, positions: PositionScheme | None = None) -> Attention:
        """Build the module; positions: the position scheme. Raises ConfigError for widths that do not fit."""
        return WindowAttention(self, sizes, positions)


class WindowAttention(SoftAttention):
    """Soft attention inside a band around the diagonal. Built by `WindowAttentionConfig.build`.

    The sequence is divided into blocks, which become rows of one batch. The queries of a block are compared with the
    keys of the block and of `window` tokens around it. While weights are recorded, the whole sequence is one block, so
    that they have shape (B, h, T, S).
    """

    def __init__(self, config: WindowAttentionConfig, sizes: AttentionSizes, positions: PositionScheme | None) -> None:
        super().__init__(config, sizes, positions)
        self.window = config.window
        self.block = min(max(1 << (self.window - 1).bit_length(), _SMALLEST_BLOCK), _LARGEST_BLOCK)

    def cast(self, states: Tensor) -> Tensor:
        """Return the states unchanged: each product casts them, and their gradients are summed in their own type."""
        return states

    def attend_full(self, queries: Queries, keys: Keys, padding: Mask) -> Tensor:
        """Attend the window to both sides: (B, S, output_width). Raises ConfigError for a mask that is a graph."""
        return self._banded(queries, keys, self.window, self.window, padding.token_mask("window"))

    def attend_causal(self, queries: Queries, keys: Keys, causal: CausalSpan) -> Tensor:
        """Attend the window that ends with the token itself: (R, T, output_width)."""
        seen = self._banded(queries, keys, self.window - 1, 0, causal.token_mask(keys.keys.size(2)))
        if (recorded := recorder()) is not None:  # tokens that left the cache have weight zero
            calls = recorded[self]
            calls[-1] = functional.pad(calls[-1], (causal.start + causal.new - keys.keys.size(2), 0))
        return seen

    def retain(self, cache: KeyValueCache) -> KeyValueCache:
        """Return a cache of the last window − 1 positions."""
        return cache.last(self.window - 1)

    def capacity(self, causal: CausalSpan) -> int | None:
        """Return at most two windows: when both are full, the last one is copied to the start of a new cache."""
        return None if causal.capacity is None else min(causal.capacity, 2 * self.window)

    def _banded(self, queries: Queries, keys: Keys, left: int, right: int, valid: Tensor | None) -> Tensor:
        """Attend from queries (B, h, T, ·) over keys (B, h, c + T, ·), from `left` before to `right` after each query.

        c: number of keys before the first query, at most `left`. valid: (B, c + T) bool, False where a key is padding;
        None if there is no padding.
        """
        vectors, rows, _, query_mask = queries
        length, held = vectors.size(2), keys.keys.size(2)
        before = held - length
        left, right = min(left, held - 1), min(right, held - 1)  # there are no keys beyond the ends
        if length < self.block or recorder() is not None:
            mask = None
            if valid is not None or length > 1:
                band = _band(length, held, before, left, right, vectors.device)
                mask = Mask(band if valid is None else band & valid[:, None, None, :])
            return self.attend(queries._replace(start=before), keys, mask)
        size = self.block
        count = -(-length // size)
        if valid is None:
            valid = torch.ones(rows, held, dtype=torch.bool, device=vectors.device)
        margin = left - before
        valid = _blocks(valid[:, None, :, None], count, size, margin, left + right)[:, :, None, :, 0]
        mask = Mask(_band(size, left + size + right, left, left, right, vectors.device) & valid)
        if query_mask is not None:
            query_mask = _blocks(query_mask[:, None, :, None], count, size, 0, 0)[:, 0, :, 0]
        blocks = Queries(_blocks(vectors, count, size, 0, 0), rows * count, left, query_mask)
        around = Keys(*(_blocks(each, count, size, margin, left + right) for each in keys))
        return self.attend(blocks, around, mask).reshape(rows, count * size, -1)[:, :length]


def _band(queries: int, keys: int, before: int, left: int, right: int, device: torch.device) -> Tensor:
    """Return (1, 1, queries, keys) bool, True for keys within the window; the first query is at key `before`."""
    offsets = torch.arange(keys, device=device) - torch.arange(before, before + queries, device=device)[:, None]
    return ((offsets >= -left) & (offsets <= right))[None, None]


def _blocks(vectors: Tensor, count: int, size: int, margin: int, overlap: int) -> Tensor:
    """Divide (B, h, L, w) into `count` overlapping blocks with stride `size`: (B · count, h, size + overlap, w).

    The first block starts `margin` positions before the first vector. Positions beyond either end are zero.
    """
    rows, heads, length, width = vectors.shape
    pieces = -(-(size + overlap) // size)
    padded = functional.pad(vectors, (0, 0, margin, (count + pieces - 1) * size - margin - length))
    # Concatenated slices: unlike that of a gather, their gradient is again a sum of slices.
    parts = [
        padded[:, :, piece * size : (piece + count) * size]
        .unflatten(2, (count, size))  # type: ignore[no-untyped-call]
        .transpose(1, 2)[:, :, :, : size + overlap - piece * size]
        for piece in range(pieces)
    ]
    return torch.cat(parts, 3).reshape(rows * count, heads, size + overlap, width)
