"""Sliding-window attention: soft attention over the neighbours, computed in blocks, never over all pairs."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from dragoman.nn.attention.cache import Keys, KeyValueCache
from dragoman.nn.attention.interface import Attention, AttentionSizes
from dragoman.nn.attention.recording import recorder
from dragoman.nn.attention.soft import Queries, SoftAttention, SoftAttentionConfig
from dragoman.nn.mask import Causal, Mask
from dragoman.nn.positions.scheme import PositionScheme

# Small blocks make many small products, large ones compare many pairs that the window then hides.
_SMALLEST_BLOCK, _LARGEST_BLOCK = 32, 256


class WindowAttentionConfig(SoftAttentionConfig):
    """Soft attention of token t over its neighbours only (Beltagy et al. 2020, section 3.1, "sliding window").

    Encoder: the keys s with |t − s| ≤ window. Decoder: t − window < s ≤ t, so the cache holds window − 1 tokens. Time
    and memory grow with length · window; N layers see N · window tokens far. Everything else is as in soft attention.

    YAML: `encoder: {attention: {kind: window, window: 64}}`
    """

    kind: Literal["window"] = "window"  # type: ignore[assignment]
    window: int = Field(
        128,
        ge=1,
        description="how far a token sees: so many tokens to each side in an encoder; in a decoder so many tokens, the "
        "last of which is itself",
    )

    def build(self, sizes: AttentionSizes, positions: PositionScheme | None = None) -> Attention:
        """The module. Raises ConfigError for widths that do not fit. positions: the scheme, in self-attention."""
        return WindowAttention(self, sizes, positions)


class WindowAttention(SoftAttention):
    """Soft attention inside a band around the diagonal. Built by `WindowAttentionConfig.build`.

    The sequence is cut into blocks; the queries of a block are compared with the keys of the block and of `window`
    tokens around it, the blocks standing beside the sentences as rows of one batch. While weights are recorded there
    is one block, the whole sequence, so that they come as (B, h, T, S).
    """

    def __init__(self, config: WindowAttentionConfig, sizes: AttentionSizes, positions: PositionScheme | None) -> None:
        super().__init__(config, sizes, positions)
        self.window = config.window
        self.block = min(max(1 << (self.window - 1).bit_length(), _SMALLEST_BLOCK), _LARGEST_BLOCK)

    def converted(self, states: Tensor) -> Tensor:
        """The states as they are: each of the three products converts them, and gradients are summed in their type."""
        return states

    def attend_text(self, queries: Queries, keys: Keys, padding: Mask) -> Tensor:
        """The window to both sides: (B, S, output_width)."""
        return self._banded(queries, keys, self.window, self.window, padding.keep[:, 0, 0])

    def attend_past(self, queries: Queries, keys: Keys, causal: Causal) -> Tensor:
        """The window that ends with the token itself: (R, T, output_width)."""
        seen = self._banded(queries, keys, self.window - 1, 0, causal.real(keys.keys.size(2)))
        if (recorded := recorder()) is not None:  # tokens that left the cache have weights too: zero
            calls = recorded[self]
            calls[-1] = functional.pad(calls[-1], (causal.start + causal.new - keys.keys.size(2), 0))
        return seen

    def kept(self, cache: KeyValueCache) -> KeyValueCache:
        """The last window − 1."""
        return cache.last(self.window - 1)

    def capacity(self, causal: Causal) -> int | None:
        """Two windows at most: when they are full, the last one is copied to the beginning of others."""
        return None if causal.capacity is None else min(causal.capacity, 2 * self.window)

    def _banded(self, queries: Queries, keys: Keys, left: int, right: int, valid: Tensor | None) -> Tensor:
        """Queries (B, h, T, ·) over the keys (B, h, c + T, ·) from `left` before each to `right` behind it.

        c: keys that stand before the first query, at most `left`. valid: (B, c + T) bool, False at keys that are
        padding, None where all are tokens.
        """
        vectors, rows, _, keep = queries
        length, held = vectors.size(2), keys.keys.size(2)
        before = held - length
        left, right = min(left, held - 1), min(right, held - 1)  # farther there is nothing
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
        if keep is not None:
            keep = _blocks(keep[:, None, :, None], count, size, 0, 0)[:, 0, :, 0]
        blocks = Queries(_blocks(vectors, count, size, 0, 0), rows * count, left, keep)
        around = Keys(*(_blocks(each, count, size, margin, left + right) for each in keys))
        return self.attend(blocks, around, mask).reshape(rows, count * size, -1)[:, :length]


def _band(queries: int, keys: int, before: int, left: int, right: int, device: torch.device) -> Tensor:
    """(1, 1, queries, keys) bool: which keys lie near enough, the first query standing at key `before`."""
    offsets = torch.arange(keys, device=device) - torch.arange(before, before + queries, device=device)[:, None]
    return ((offsets >= -left) & (offsets <= right))[None, None]


def _blocks(vectors: Tensor, count: int, size: int, margin: int, overlap: int) -> Tensor:
    """Cut (B, h, L, w) into `count` blocks that begin `size` apart: (B · count, h, size + overlap, w).

    The first begins `margin` places before the first vector. Places beyond either end are zero.
    """
    rows, heads, length, width = vectors.shape
    pieces = -(-(size + overlap) // size)
    padded = functional.pad(vectors, (0, 0, margin, (count + pieces - 1) * size - margin - length))
    # Slices put side by side: unlike a gather, their gradient is again a sum of slices.
    parts = [
        padded[:, :, piece * size : (piece + count) * size]
        .unflatten(2, (count, size))  # type: ignore[no-untyped-call]
        .transpose(1, 2)[:, :, :, : size + overlap - piece * size]
        for piece in range(pieces)
    ]
    return torch.cat(parts, 3).reshape(rows * count, heads, size + overlap, width)
