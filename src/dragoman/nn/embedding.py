"""Embeddings of tokens or feature vectors, and the vocabulary projection, which may share the embedding matrix."""

from collections.abc import Sequence
from math import sqrt
from typing import Literal

import torch
from torch import Tensor, nn

from dragoman.nn.dropout import Dropout
from dragoman.nn.factors import token_ids
from dragoman.nn.positions.scheme import PositionEmbedding
from dragoman.text.symbols import BOS, EOS, SPECIAL_SYMBOLS

StartSymbol = Literal["bos", "eos"]
"""The symbol before the first token of an output: the start or the end of a text (BOS or EOS)."""

IMPOSSIBLE_BIAS = -1000.0
"""Bias of a vocabulary entry that is never predicted. Its probability is 0, since exp(−1000) is 0 in float32."""


class VectorProjection(nn.Module):
    """x ↦ √d · (W x + b), used instead of a token embedding. `Embedding` applies the factor √d.

    Inputs are vectors such as image regions, audio frames or log events (decks 001 and 002). The linear map is equation
    1 of Dosovitskiy et al. 2021. W is initialised from N(0, 1/(n·d)), so that inputs of unit variance are mapped to
    outputs of unit variance. A zero vector marks the end of the sequence and is mapped to √d · b.
    """

    def __init__(self, inputs: int, width: int) -> None:
        """inputs: input dimension n. width: model width d."""
        super().__init__()
        self.embedding_dim = width
        self.weight = nn.Parameter(torch.empty(width, inputs))
        self.bias = nn.Parameter(torch.zeros(width))
        nn.init.normal_(self.weight, std=(inputs * width) ** -0.5)

    def forward(self, vectors: Tensor) -> Tensor:
        """Project vectors (B, S, n) → (B, S, d)."""
        return nn.functional.linear(vectors.to(self.weight.dtype), self.weight, self.bias)


class Embedding(nn.Module):
    """Token embeddings, optionally scaled by √d (Vaswani et al. 2017, section 3.4), with positions and dropout."""

    timed = (("forward", "embedding"),)

    def __init__(
        self,
        tokens: nn.Embedding | VectorProjection,
        positions: PositionEmbedding,
        dropout: float,
        scaled: bool = True,
        *,
        segments: nn.Embedding | None = None,
        norm: nn.Module | None = None,
        matches: nn.Embedding | None = None,
        start_symbol: StartSymbol = "bos",
    ) -> None:
        """segments: vectors of the segments of an input, such as the two texts of a pair; None for no such vectors.

        matches: (1, d), a vector that is added to the vector of each token that occurs in both texts of a pair; None
        for no such vector. norm: normalises the sum of all vectors, before dropout; None for no normalisation.
        start_symbol: `eos` represents BOS by the vector of EOS, so the vector of BOS is not used.
        """
        super().__init__()
        self.tokens = tokens
        self.positions = positions
        self.segments = segments
        self.norm = norm
        self.matches = matches
        self.starts_with_end = start_symbol == "eos"
        self.dropout = Dropout(dropout)
        self.scale = sqrt(tokens.embedding_dim) if scaled else 1.0

    def forward(
        self,
        tokens: Tensor,
        start: int = 0,
        mask: Tensor | None = None,
        left_padding: Tensor | None = None,
        packed: bool = False,
    ) -> Tensor:
        """Embed tokens (B, T) int64 or vectors (B, T, n) that start at position `start` → (B, T, d).

        Tokens may have factors (B, T, 1 + K) if the table is a `FactoredTokens`.
        mask: (B, T) bool, False at padding; required by position schemes that depend on the length of the text.
        left_padding: (B,) int64, number of padding positions before the first token of each row. Positions are counted
        from that token. packed: whether a row may contain several documents. A document starts with BOS, and its
        positions and segments are counted from there.
        """
        vectors = self.tokens(torch.where(tokens == BOS, EOS, tokens) if self.starts_with_end else tokens)
        tokens = token_ids(tokens)
        starts = document_starts(tokens) if packed else None
        if self.matches is not None:
            vectors = vectors + self.matches.weight * occur_in_both(tokens, starts).unsqueeze(2)
        vectors = vectors * self.scale
        if self.segments is not None:
            vectors = vectors + self.segments(segment_numbers(tokens, self.segments.num_embeddings, starts))
        vectors = self.positions.embed(vectors, start, mask, left_padding if starts is None else starts)
        return self.dropout(vectors if self.norm is None else self.norm(vectors, mask))  # type: ignore[no-any-return]


def document_starts(tokens: Tensor) -> Tensor:
    """Return the position (B, T) int64 of the BOS at or before each token (B, T); 0 if there is none."""
    positions = torch.arange(tokens.size(1), device=tokens.device)
    return torch.where(tokens == BOS, positions, 0).cummax(1).values


def segment_numbers(tokens: Tensor, segments: int, starts: Tensor | None = None) -> Tensor:
    """Return the number (B, T) int64 of the segment of each token (B, T), from 0 to segments − 1.

    A segment ends with EOS. If there are more, the last number stands for all further segments. starts: (B, T) int64,
    the first position of the document of each token; None if each row is one document.
    """
    ends = tokens == EOS
    numbers = ends.cumsum(1) - ends.to(torch.int64)
    if starts is not None:
        numbers = numbers - numbers.gather(1, starts)
    return numbers.clamp_max(segments - 1)


def occur_in_both(tokens: Tensor, starts: Tensor | None = None) -> Tensor:
    """Return whether each token (B, T) int64 occurs in both segments of its row (B, T) bool; see `segment_numbers`.

    This is the exact match of Chen et al. 2017, section 3.2, of tokens instead of words. All segments after the first
    are one. Special symbols do not count. starts: as in `segment_numbers`; a document is compared with itself only.
    Takes O(T²) time and memory, as attention does.
    """
    numbers = segment_numbers(tokens, 2, starts)
    keys = tokens if starts is None else tokens * tokens.size(1) + starts
    matches = (keys.unsqueeze(2) == keys.unsqueeze(1)) & (numbers.unsqueeze(2) != numbers.unsqueeze(1))
    return matches.any(2) & (tokens >= len(SPECIAL_SYMBOLS))


def token_table(size: int, width: int) -> nn.Embedding:
    """Return an embedding table (size, width) initialised from N(0, 1/width).

    The logits of a tied projection then have unit variance.
    """
    table = nn.Embedding(size, width)
    nn.init.normal_(table.weight, std=width**-0.5)
    return table


class Projection(nn.Module):
    """Map hidden states to logits hWᵀ + b, with W (V, d).

    If biased, b (V,) is learned, and initialised with zeros. excluded: ids of entries that are never predicted, whose
    bias is −1000, as a constant unless biases are learned.
    """

    def __init__(self, weight: Tensor, biased: bool = False, excluded: Sequence[int] = ()) -> None:
        super().__init__()
        self.weight = weight
        self.bias: Tensor | None = None
        if biased or excluded:
            values = torch.zeros(len(weight))
            values[list(excluded)] = IMPOSSIBLE_BIAS
            if biased:
                self.bias = nn.Parameter(values)
            else:
                del self.bias
                self.register_buffer("bias", values, persistent=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the logits of hidden states (…, d) → (…, V)."""
        return nn.functional.linear(hidden, self.weight, self.bias)
