"""Feature vectors as encoder input: a projection in place of the token embedding."""

import torch
from torch import Tensor, nn


class VectorProjection(nn.Module):
    """x ↦ √d · (W x + b), in place of a token embedding; the factor √d is applied by `Embedding`.

    The inputs of decks 001 and 002 are image regions, audio frames or log events. The linear map is equation 1 of
    Dosovitskiy et al. 2021. W is drawn from N(0, 1/(n·d)), so inputs of unit variance give outputs of unit variance. A
    zero vector marks the end of the sequence; it is mapped to √d · b.
    """

    def __init__(self, inputs: int, width: int) -> None:
        """inputs: input dimension n. width: model width d."""
        super().__init__()
        self.embedding_dim = width
        self.weight = nn.Parameter(torch.empty(width, inputs))
        self.bias = nn.Parameter(torch.zeros(width))
        nn.init.normal_(self.weight, std=(inputs * width) ** -0.5)

    def forward(self, vectors: Tensor) -> Tensor:
        """(B, S, n) → (B, S, d)."""
        return nn.functional.linear(vectors.to(self.weight.dtype), self.weight, self.bias)
