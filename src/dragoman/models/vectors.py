"""Feature vectors as an encoder's input: projected, where tokens are embedded."""

import torch
from torch import Tensor, nn

from dragoman.nn.dropout import Dropout
from dragoman.nn.positions.scheme import Positions


class VectorEmbedding(nn.Module):
    """x ↦ W x + b, positions joined, dropout; takes the place of `Embedding` in any encoder.

    Decks 001 and 002: image regions, audio frames, events; the linear map is that of Dosovitskiy et al. 2021,
    equation 1. W is drawn from N(0, 1/n), so inputs of unit variance give outputs of unit variance. A vector of zeros
    stands for the end of the sequence; it becomes b.
    """

    def __init__(self, inputs: int, width: int, positions: Positions, dropout: float) -> None:
        """inputs: n, numbers in a vector; width: d, as wide as `positions` asks for."""
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, inputs))
        self.bias = nn.Parameter(torch.zeros(width))
        nn.init.normal_(self.weight, std=inputs**-0.5)
        self.positions = positions
        self.dropout = Dropout(dropout)

    def forward(self, vectors: Tensor, start: int = 0, keep: Tensor | None = None) -> Tensor:
        """vectors (B, S, n) float32, the first standing at position `start` → (B, S, d). keep: as for `Embedding`."""
        projected = nn.functional.linear(vectors.to(self.weight.dtype), self.weight, self.bias)
        return self.dropout(self.positions.embed(projected, start, keep))  # type: ignore[no-any-return]
