"""Position schemes with one vector per position, which is added to the token vector or concatenated with it."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from dragoman.base.errors import DataError
from dragoman.nn.positions.scheme import PositionEmbedding, PositionScheme


class Encoding(nn.Module):
    """A module that computes one vector per position. limit: number of positions; None if there is no limit."""

    limit: int | None = None

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, start: int, length: int, mask: Tensor | None) -> Tensor:
        """Return the vectors of positions start … start+length−1.

        The shape is (length, width), or (B, length, width) if the vectors differ by row. mask: (B, length) bool, False
        at padding; None if there is no padding.
        """
        raise NotImplementedError


class AbsoluteScheme(PositionScheme):
    """The base class of schemes with one vector per position. Subclasses override `encoding`."""

    join: Literal["add", "concatenate"] = Field(
        "add",
        description="add: position vectors are added to the token vectors. concatenate: both are concatenated, and a "
        "learned projection maps the result back to width d.",
    )
    width: int | None = Field(
        None, ge=1, description="Width of a concatenated position vector; null: the model width d."
    )

    def encoding(self, width: int) -> Encoding:
        """Build the module that computes position vectors of `width`."""
        raise NotImplementedError

    def build_embedding(self, width: int) -> PositionEmbedding:
        """Build the module that combines the position vectors with token vectors of `width`."""
        if self.join == "add":
            return Added(self.encoding(width))
        return Concatenated(self.encoding(self.width or width), width)


class Added(PositionEmbedding):
    """The sum x + p of token vector and position vector (Vaswani et al. 2017, section 3.5)."""

    def __init__(self, encoding: Encoding) -> None:
        super().__init__()
        self.encoding = encoding
        self.limit = encoding.limit

    def embed(self, embeddings: Tensor, start: int, mask: Tensor | None, left_padding: Tensor | None = None) -> Tensor:
        """See `PositionEmbedding.embed`. Raises DataError for texts that exceed the limit of the encoding."""
        return embeddings + _vectors(self.encoding, embeddings, start, mask, left_padding)


class Concatenated(PositionEmbedding):
    """The projection W[x; p] + b of the concatenated token and position vectors (homework of deck 003).

    W is (d, d + width of p).
    """

    def __init__(self, encoding: Encoding, width: int) -> None:
        super().__init__()
        self.encoding = encoding
        self.limit = encoding.limit
        self.back = nn.Linear(width + encoding.width, width)

    def embed(self, embeddings: Tensor, start: int, mask: Tensor | None, left_padding: Tensor | None = None) -> Tensor:
        """See `PositionEmbedding.embed`. Raises DataError for texts that exceed the limit of the encoding."""
        vectors = _vectors(self.encoding, embeddings, start, mask, left_padding)
        return self.back(torch.cat((embeddings, vectors.expand(*embeddings.shape[:-1], -1)), -1))  # type: ignore[no-any-return]


def _vectors(
    encoding: Encoding, embeddings: Tensor, start: int, mask: Tensor | None, left_padding: Tensor | None
) -> Tensor:
    """Return the position vectors of tokens (B, T, d) that start at position `start`.

    Raises DataError for positions beyond the limit of the encoding.
    """
    end = start + embeddings.size(-2)
    if left_padding is not None and encoding.limit is not None and end > encoding.limit:
        end -= int(left_padding.min())
    if encoding.limit is not None and end > encoding.limit:
        raise DataError(
            f"the text has {end} tokens or more, but the model has only {encoding.limit} positions: shorten it, or "
            "train a model with a larger model.positions.limit"
        )
    if left_padding is None:
        return encoding(start, embeddings.size(-2), mask).to(embeddings.dtype)  # type: ignore[no-any-return]
    offsets = left_padding if left_padding.dim() == 2 else left_padding[:, None]
    positions = torch.arange(start, start + embeddings.size(-2), device=left_padding.device) - offsets
    return encoding(0, end, None)[positions.clamp_min(0)].to(embeddings.dtype)  # type: ignore[no-any-return]
