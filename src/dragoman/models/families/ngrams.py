"""An encoder without layers, which represents a text by its n-grams."""

from itertools import accumulate
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from dragoman.models.families.family import EncoderFamily, SideContext
from dragoman.models.interface import Memory
from dragoman.nn.hashing import extend_hashes, hash_buckets

_MOST_BUCKETS, _MOST_NUMBERS = 2**18, 2**24


class NgramEncoderConfig(EncoderFamily):
    """The sum of vectors of a text's n-grams of tokens, which are hashed (Joulin et al. 2017), with TF-IDF weights.

    With a linear head this is a linear model. A run estimates it with a convex solver (`tasks.labelled.ngrams`) in
    seconds, without updates. Selected by `encoder: {kind: ngrams}`.
    """

    kind: Literal["ngrams"] = "ngrams"
    order: int = Field(3, ge=1, le=5, description="Maximum length of the n-grams, in tokens.")
    buckets: int | None = Field(
        None,
        ge=2,
        description="Number of vectors. N-grams with the same hash share one. null: 262,144, but fewer for more than "
        "64 classes.",
    )

    def build(self, context: SideContext) -> "NgramEncoder":
        """Build the encoder, whose vectors are zero until they are estimated."""
        return NgramEncoder(self.order, self.buckets or default_buckets(context.width), context.width)


def default_buckets(width: int) -> int:
    """Return the default number of vectors of this width: a power of two."""
    return min(_MOST_BUCKETS, 1 << max(1, (_MOST_NUMBERS // width).bit_length() - 1))


class NgramVectors(nn.Module):
    """The part of each token in v = Σ_g w_g e_g over the n-grams g of a text: an n-gram belongs equally to its tokens.

    The weights are w_g = (1 + log tf_g) · idf_g / c, where c is the Euclidean norm of these products, so that texts of
    any length are comparable.
    """

    def __init__(self, order: int, buckets: int, width: int) -> None:
        super().__init__()
        self.order, self.buckets = order, buckets
        self.vectors = nn.Embedding(buckets, width)
        nn.init.zeros_(self.vectors.weight)
        self.idf: Tensor
        self.register_buffer("idf", torch.ones(buckets))

    def occurrences(self, tokens: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the buckets (B, G) int64 of all n-grams, by order and position, and the number of each in its row.

        The numbers are (B, G) float. The arguments are those of `forward`. In place of n-grams that contain padding,
        the bucket is `self.buckets`, and the number 0.
        """
        hashes = accumulate(
            (tokens[:, start:] for start in range(min(self.order, tokens.size(1)))),
            lambda shorter, last: extend_hashes(shorter[:, : last.size(1)], last),
        )
        found = [hash_buckets(each, self.buckets) for each in hashes]
        buckets = torch.cat([torch.where(mask[:, -each.size(1) :], each, self.buckets) for each in found], 1)
        ordered = buckets.sort(1).values
        counts = torch.searchsorted(ordered, buckets, right=True) - torch.searchsorted(ordered, buckets)
        return buckets, counts.masked_fill(buckets == self.buckets, 0).to(self.idf.dtype)

    def weights(self, buckets: Tensor, counts: Tensor) -> Tensor:
        """Return the weight w_g (B, G) of each n-gram, divided among its occurrences, which `occurrences` returned."""
        times = counts.clamp_min(1)
        values = (1 + times.log()) * self.idf[buckets.clamp_max(self.buckets - 1)] * (counts > 0)
        squares = (values.square() / times).sum(1, keepdim=True)
        return values / times / squares.sqrt().clamp_min(torch.finfo(values.dtype).tiny)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Return the parts (B, S, d) of tokens (B, S) int64 with mask (B, S) bool."""
        buckets, counts = self.occurrences(tokens, mask)
        vectors = self.vectors(buckets.clamp_max(self.buckets - 1))
        weighted = vectors * self.weights(buckets, counts).to(vectors.dtype).unsqueeze(2)
        sizes = [tokens.size(1) - shorter for shorter in range(min(self.order, tokens.size(1)))]
        parts = torch.zeros(*tokens.shape, vectors.size(2), dtype=vectors.dtype, device=vectors.device)
        for length, ngrams in enumerate(weighted.split(sizes, 1), 1):
            for place in range(length):
                parts[:, place : place + ngrams.size(1)] += ngrams / length
        return parts


class NgramEncoder(nn.Module):
    """Represents a text by v, the sum of `NgramVectors`. Implements `Encoder`.

    As in `SimpleEncoder`, v is the state of each position.
    """

    timed = (("forward", "encoder"),)

    def __init__(self, order: int, buckets: int, width: int) -> None:
        super().__init__()
        self.tokens = NgramVectors(order, buckets, width)

    def forward(self, tokens: Tensor, mask: Tensor) -> Memory:
        """Encode tokens (B, S) int64 with mask (B, S) bool as states (B, S, d), equal at all positions."""
        vector = self.tokens(tokens, mask).sum(1)
        return Memory(vector.unsqueeze(1).expand(-1, tokens.size(1), -1), mask, vector)
