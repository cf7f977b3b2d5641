"""Token embeddings, and the vocabulary projection, which may share their matrix."""

from math import sqrt

import torch
from torch import Tensor, nn

from dragoman.nn.dropout import Dropout
from dragoman.nn.positions.scheme import PositionEmbedding
from dragoman.nn.vectors import VectorProjection


class Embedding(nn.Module):
    """Token vectors, optionally scaled by √d (Vaswani et al. 2017, section 3.4), with positions and dropout."""

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
        """tokens (B, T) int64, or vectors (B, T, n), starting at position `start` → (B, T, d).

        mask: (B, T) bool, False at padding; needed by position schemes that depend on the text's length. left_padding:
        (B,) int64, the number of padding positions before each row's first token, from which its positions are counted.
        """
        return self.dropout(self.positions.embed(self.tokens(tokens) * self.scale, start, mask, left_padding))  # type: ignore[no-any-return]


def token_table(size: int, width: int) -> nn.Embedding:
    """Return a (size, width) embedding drawn from N(0, 1/d), so that logits of a tied projection have unit variance."""
    table = nn.Embedding(size, width)
    nn.init.normal_(table.weight, std=width**-0.5)
    return table


class Projection(nn.Module):
    """Map hidden states to logits, hWᵀ + b with W (V, d) and, if biased, b (V,), which is initialised to zero."""

    def __init__(self, weight: Tensor, biased: bool = False) -> None:
        super().__init__()
        self.weight = weight
        self.bias = nn.Parameter(torch.zeros(len(weight))) if biased else None

    def forward(self, hidden: Tensor) -> Tensor:
        """(…, d) → (…, V)."""
        return nn.functional.linear(hidden, self.weight, self.bias)
