"""Feature vectors as an encoder's input: projected, where tokens are embedded."""

import torch
from torch import Tensor, nn


class VectorProjection(nn.Module):
    """x ↦ √d · (W x + b), in a token table's place; the factor √d is `Embedding`'s.

    Decks 001 and 002: image regions, audio frames, events of a log. The linear map is that of Dosovitskiy et al. 2021,
    equation 1. W is drawn from N(0, 1/(n·d)), so inputs of unit variance give outputs of unit variance. A vector of
    zeros stands for the end of the sequence; it becomes √d · b.
    """

    def __init__(self, inputs: int, width: int) -> None:
        """inputs: n, numbers in a vector; width: d."""
        super().__init__()
        self.embedding_dim = width
        self.weight = nn.Parameter(torch.empty(width, inputs))
        self.bias = nn.Parameter(torch.zeros(width))
        nn.init.normal_(self.weight, std=(inputs * width) ** -0.5)

    def forward(self, vectors: Tensor) -> Tensor:
        """(B, S, n) → (B, S, d)."""
        return nn.functional.linear(vectors.to(self.weight.dtype), self.weight, self.bias)
