"""Scores of tags that are a linear function of the factors of a word and its neighbours, as in a classical CRF."""

from collections.abc import Iterator

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.settings.config import Config
from dragoman.nn.dropout import Dropout
from dragoman.nn.hashing import extend_hashes, hash_buckets
from dragoman.text.word_factors import LOWER, SHORT_SHAPE, count_factors

Template = tuple[tuple[int, int], ...]
"""Pairs of the index of a factor and of an offset: their values at a word are together one feature."""


class ContextConfig(Config):
    """Scores of tags from hashed features of neighbouring words, which are added to those of the encoder."""

    buckets: int = Field(131_072, ge=1, description="Number of weights per tag. Features with the same hash share one.")
    dropout: float = Field(0.3, ge=0, lt=1, description="Dropout rate of whole features (0 to 1).")


def templates(columns: int) -> tuple[Template, ...]:
    """Return the features of a word with further columns.

    All factors of the word and its two neighbours; the lower-case word and the short shape of the words at a distance
    of two; pairs and triples of both for adjacent words; the columns within two words, with pairs and triples.
    """
    count = count_factors(columns)
    return tuple(
        [((factor, offset),) for factor in range(count) for offset in (-1, 0, 1)]
        + [((factor, offset),) for factor in (LOWER, SHORT_SHAPE) for offset in (-2, 2)]
        + [each for factor in (LOWER, SHORT_SHAPE) for each in _sequences(factor, 1)]
        + [((LOWER, -1), (LOWER, 1))]
        + [((column, offset),) for column in range(count_factors(0), count) for offset in (-2, 2)]
        + [each for column in range(count_factors(0), count) for each in _sequences(column, 2)]
    )


def _sequences(factor: int, distance: int) -> Iterator[Template]:
    """Yield the pairs and triples of a factor of adjacent words up to a distance."""
    for length in (2, 3):
        for first in range(-distance, distance - length + 2):
            yield tuple((factor, first + place) for place in range(length))


class ContextScores(nn.Module):
    """A linear function of hashed features of a word and its neighbours (a wide branch; Cheng et al. 2016).

    With a linear chain and without an encoder, it is the conditional random field of Lafferty et al. 2001. Relevance by
    gradient × input is that of the encoder alone, relevance by erasure that of the whole model.
    """

    def __init__(self, tags: int, columns: int, config: ContextConfig) -> None:
        """columns: number of further columns of a word. The weights are zero at first."""
        super().__init__()
        self.templates = templates(columns)
        self.weights = nn.Embedding(config.buckets, tags)
        self.dropout = Dropout(config.dropout)
        nn.init.zeros_(self.weights.weight)

    def features(self, factors: Tensor) -> Tensor:
        """Return the bucket (B, S, F) int64 of each feature, for the factors (B, S, K) int64 of each word.

        A word beyond an end of the sentence has the factors of a special symbol, 0.
        """
        size, padded = factors.size(1), functional.pad(factors, (0, 0, 2, 2))
        found = []
        for number, template in enumerate(self.templates):
            hashes = torch.full_like(factors[..., 0], number)
            for factor, offset in template:
                values = padded[:, 2 + offset : 2 + offset + size, factor]
                hashes = extend_hashes(hashes, values)
            found.append(hash_buckets(hashes, self.weights.num_embeddings))
        return torch.stack(found, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the scores (B, S, C) for tokens with factors (B, S, 1 + K) int64; 0 for tokens without factors."""
        weights = self.weights.weight
        if tokens.dim() == 2:
            return weights.new_zeros(*tokens.shape, weights.size(1))
        features = self.features(tokens[..., 1:]).flatten(0, 1)
        kept = self.dropout(torch.ones(features.shape, dtype=weights.dtype, device=features.device))
        sums = functional.embedding_bag(features, weights, mode="sum", per_sample_weights=kept)
        return sums.view(*tokens.shape[:2], -1)
