"""Token embeddings and the vocabulary projection that may share their matrix."""

from math import sqrt

import torch
from torch import Tensor, nn

from dragoman.nn.dropout import Dropout
from dragoman.nn.positions.scheme import PositionEmbedding
from dragoman.nn.vectors import VectorProjection


class Embedding(nn.Module):
    """Token vectors, scaled by √d (Vaswani et al. 2017, section 3.4) or not, positions joined to them, dropout."""

    timed = (("forward", "embedding"),)

    def __init__(
        self, tokens: nn.Embedding | VectorProjection, positions: PositionEmbedding, dropout: float, scaled: bool = True
    ) -> None:
        super().__init__()
        self.tokens = tokens
        self.positions = positions
        self.dropout = Dropout(dropout)
        self.scale = sqrt(tokens.embedding_dim) if scaled else 1.0

    def forward(
        self, tokens: Tensor, start: int = 0, mask: Tensor | None = None, left_padding: Tensor | None = None
    ) -> Tensor:
        """tokens (B, T) int64, or vectors (B, T, n), the first standing at position `start` → (B, T, d).

        mask: (B, T) bool, False at padding; needed where the length of the whole text counts. left_padding: (B,) int64,
        by how many places each row's positions are counted later than from 0, because padding stands before its first
        token.
        """
        return self.dropout(self.positions.embed(self.tokens(tokens) * self.scale, start, mask, left_padding))  # type: ignore[no-any-return]


def token_table(size: int, width: int) -> nn.Embedding:
    """A (size, width) table drawn from N(0, 1/d), which gives the logits of a tied projection unit variance."""
    table = nn.Embedding(size, width)
    nn.init.normal_(table.weight, std=width**-0.5)
    return table


class Projection(nn.Module):
    """Hidden states to logits, hWᵀ + b, W (V, d), b (V,), which begins at zero; usually without b."""

    def __init__(self, weight: Tensor, biased: bool = False) -> None:
        super().__init__()
        self.weight = weight
        self.bias = nn.Parameter(torch.zeros(len(weight))) if biased else None

    def forward(self, hidden: Tensor) -> Tensor:
        """(…, d) → (…, V)."""
        return nn.functional.linear(hidden, self.weight, self.bias)
