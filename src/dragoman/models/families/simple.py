"""Baseline encoders without word order: the mean or the sum of the embeddings."""

from typing import Literal

from torch import Tensor, nn

from dragoman.models.families.family import EncoderFamily, SideContext
from dragoman.models.interface import Memory
from dragoman.nn.embedding import Embedding


class MeanEncoderConfig(EncoderFamily):
    """The mean of the embeddings of S tokens, v = (1/S) Σ_i e_i (deck 001, "basic combination").

    Selected by `encoder: {kind: mean}`.
    """

    kind: Literal["mean"] = "mean"

    def build(self, context: SideContext) -> "SimpleEncoder":
        """Build the encoder, whose only parameters are the embeddings."""
        return SimpleEncoder(context.embedding, divide=True)


class SumEncoderConfig(EncoderFamily):
    """The sum of the tokens' embeddings, v = Σ_i e_i (deck 001, "basic combination").

    Selected by `encoder: {kind: sum}`.
    """

    kind: Literal["sum"] = "sum"

    def build(self, context: SideContext) -> "SimpleEncoder":
        """Build the encoder, whose only parameters are the embeddings."""
        return SimpleEncoder(context.embedding, divide=False)


class SimpleEncoder(nn.Module):
    """Represents the whole text by one vector. Implements `Encoder`.

    The memory contains the vector at each of the S positions, because attention and the maximum output length depend
    on the number of source positions.
    """

    timed = (("forward", "encoder"),)

    def __init__(self, embedding: Embedding, divide: bool) -> None:
        super().__init__()
        self.embedding = embedding
        self.divide = divide

    def forward(self, tokens: Tensor, mask: Tensor) -> Memory:
        """Encode tokens (B, S) int64 with mask (B, S) bool as states (B, S, d), equal at all positions."""
        embedded = self.embedding(tokens, mask=mask).masked_fill(~mask.unsqueeze(2), 0.0)
        vector = embedded.sum(1)
        if self.divide:
            vector = vector / mask.sum(1, keepdim=True).clamp_min(1)
        return Memory(vector.unsqueeze(1).expand_as(embedded), mask, vector)
