"""Token vectors that are sums: the vector of a token, and those of the factors of its word."""

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.settings.config import Config
from dragoman.nn.dropout import Dropout


class WordFactorsConfig(Config):
    """Vectors of the factors of words, such as their endings and shape, which are hashed."""

    buckets: int = Field(
        32_768, ge=1, description="Number of vectors. Factors with the same hash share one (Weinberger et al. 2009)."
    )
    dropout: float = Field(0.2, ge=0, lt=1, description="Dropout rate of whole factors (0 to 1).")


class FactoredTokens(nn.Embedding):
    """A table of token vectors to which vectors of factors are added (Sennrich & Haddow 2016, with sums).

    With vectors of beginnings, endings and shapes, words that are unknown have a representation.
    """

    def __init__(self, size: int, width: int, config: WordFactorsConfig) -> None:
        """size: vocabulary size V. All vectors are initialised from N(0, 1/width)."""
        super().__init__(size, width)
        self.factors = nn.Embedding(config.buckets + 1, width, padding_idx=0)
        self.dropout = Dropout(config.dropout)
        for table in (self.weight, self.factors.weight[1:]):
            nn.init.normal_(table, std=width**-0.5)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the vectors (B, S, d) of tokens (B, S) int64, or (B, S, 1 + K): a token and the numbers of K factors.

        The factor 0 has no vector.
        """
        if tokens.dim() == 2:
            return super().forward(tokens)
        numbers, buckets = tokens[..., 1:].flatten(0, 1), self.factors.num_embeddings - 1
        factors = torch.where(numbers > 0, (numbers - 1) % buckets + 1, 0)
        kept = self.dropout(torch.ones(factors.shape, dtype=self.weight.dtype, device=factors.device))
        table = self.factors
        sums = functional.embedding_bag(
            factors, table.weight, mode="sum", per_sample_weights=kept, padding_idx=table.padding_idx
        )
        return super().forward(tokens[..., 0]) + sums.view(*tokens.shape[:2], -1)


def token_ids(tokens: Tensor) -> Tensor:
    """Return the tokens (B, S) of tokens (B, S), with or without factors (B, S, 1 + K)."""
    return tokens if tokens.dim() == 2 or tokens.is_floating_point() else tokens[..., 0]
