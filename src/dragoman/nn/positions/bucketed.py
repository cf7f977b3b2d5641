"""A learned bias of scores for each bucket of distances between key and query (Raffel et al. 2020)."""

from math import log
from typing import ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from dragoman.nn.positions.scheme import PositionScheme, RelativePositions


class BucketedConfig(PositionScheme):
    """score += b_(head, bucket(key − query)), with one learned bias per head and bucket (Raffel et al. 2020, T5).

    Half of the buckets of a direction are single distances. The others cover ranges that grow exponentially up to
    `max_distance`, beyond which all distances have the last bucket. The length of texts is not limited.

    YAML: `positions: {kind: bucketed}`
    """

    kind: Literal["bucketed"] = "bucketed"
    inside_attention: ClassVar[bool] = True
    buckets: int = Field(32, ge=2, description="Number of buckets (paper: 32).")
    max_distance: int = Field(
        128, ge=2, description="Distance in tokens from which all distances share a bucket (paper: 128)."
    )
    bidirectional: bool = Field(
        True,
        description="Divide the buckets among preceding and following keys. false: all buckets are for preceding keys, "
        "for decoders.",
    )
    shared: bool = Field(True, description="All layers of a side use the same biases, as in the paper.")

    @model_validator(mode="after")
    def _check_buckets(self) -> Self:
        if self.bidirectional and (self.buckets < 4 or self.buckets % 2):
            raise ValueError(f"bidirectional needs an even number of at least 4 buckets, not {self.buckets}")
        if self.max_distance <= self.exact:
            raise ValueError(
                f"max_distance is {self.max_distance}, but the first {self.exact} distances have buckets of their own: "
                "raise max_distance, or lower buckets"
            )
        return self

    @property
    def exact(self) -> int:
        """Number of distances with a bucket of their own, in each direction."""
        return self.buckets // (4 if self.bidirectional else 2)

    def build_relative(self, heads: int, query_width: int, key_width: int, value_width: int) -> "Bucketed":
        """Build the biases of `heads` heads."""
        return Bucketed(self, heads)


class Bucketed(RelativePositions):
    """The biases b, a table (buckets, heads), initialised with zeros."""

    acts_on_scores = True

    def __init__(self, config: BucketedConfig, heads: int) -> None:
        super().__init__()
        self.config, self.shared = config, config.shared
        self.table = nn.Parameter(torch.zeros(config.buckets, heads))

    def score_bias(self, queries: Tensor, offsets: Tensor) -> Tensor:
        """Return the biases (1, h, …, T, S), which all sentences share."""
        blocks = [1] * (queries.dim() - 4)
        biases = self.table[self.bucket(offsets)]  # (T, S, h)
        return biases.permute(2, 0, 1).view(1, -1, *blocks, *offsets.shape)

    def bucket(self, offsets: Tensor) -> Tensor:
        """Return the bucket of each offset, an int64 tensor of any shape. Offsets are the key minus the query."""
        config = self.config
        if config.bidirectional:
            count, distances = config.buckets // 2, offsets.abs()
            first = torch.where(offsets > 0, count, 0)
        else:
            count, distances = config.buckets, (-offsets).clamp_min(0)
            first = torch.zeros_like(offsets)
        exact = config.exact
        growth = torch.log(distances.clamp_min(1).float() / exact) / log(config.max_distance / exact)
        ranges = (exact + (growth * (count - exact)).long()).clamp_max(count - 1)
        return first + torch.where(distances < exact, distances, ranges)
