"""Schemes with one vector per position, which is added to the token's vector or concatenated with it."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from dragoman.base.errors import DataError
from dragoman.nn.positions.scheme import PositionEmbedding, PositionScheme


class Encoding(nn.Module):
    """One vector per position. limit: the number of positions, None if there is no limit."""

    limit: int | None = None

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, start: int, length: int, mask: Tensor | None) -> Tensor:
        """Return the vectors of positions start … start+length−1: (length, width), or (B, length, width) per row.

        mask: (B, length) bool, False at padding, or None if there is no padding.
        """
        raise NotImplementedError


class AbsoluteScheme(PositionScheme):
    """Base class of schemes with one vector per position. Subclasses override `encoding`."""

    join: Literal["add", "concatenate"] = Field(
        "add",
        description="add: to the token's vector. concatenate: to the token's vector, followed by a learned projection "
        "back to d.",
    )
    width: int | None = Field(
        None, ge=1, description="Width of the position vector if it is concatenated; null: the model width d."
    )

    def encoding(self, width: int) -> Encoding:
        """Build the module that computes the vectors."""
        raise NotImplementedError

    def build_embedding(self, width: int) -> PositionEmbedding:
        """Build the module that joins the vectors to token vectors of `width`."""
        if self.join == "add":
            return Added(self.encoding(width))
        return Concatenated(self.encoding(self.width or width), width)


class Added(PositionEmbedding):
    """x + p (Vaswani et al. 2017, section 3.5)."""

    def __init__(self, encoding: Encoding) -> None:
        super().__init__()
        self.encoding = encoding
        self.limit = encoding.limit

    def embed(self, embeddings: Tensor, start: int, mask: Tensor | None, left_padding: Tensor | None = None) -> Tensor:
        """(B, T, d) → (B, T, d). Raises DataError for texts longer than the encoding's limit."""
        return embeddings + _vectors(self.encoding, embeddings, start, mask, left_padding)


class Concatenated(PositionEmbedding):
    """W[x; p] + b, with W (d, d + width of p): deck 003's homework."""

    def __init__(self, encoding: Encoding, width: int) -> None:
        super().__init__()
        self.encoding = encoding
        self.limit = encoding.limit
        self.back = nn.Linear(width + encoding.width, width)

    def embed(self, embeddings: Tensor, start: int, mask: Tensor | None, left_padding: Tensor | None = None) -> Tensor:
        """(B, T, d) → (B, T, d). Raises DataError for texts longer than the encoding's limit."""
        vectors = _vectors(self.encoding, embeddings, start, mask, left_padding)
        return self.back(torch.cat((embeddings, vectors.expand(*embeddings.shape[:-1], -1)), -1))  # type: ignore[no-any-return]


def _vectors(
    encoding: Encoding, embeddings: Tensor, start: int, mask: Tensor | None, left_padding: Tensor | None
) -> Tensor:
    """Return the encoding of tokens (B, T, d) from position `start` on. Raises DataError beyond its limit."""
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
    places = torch.arange(start, start + embeddings.size(-2), device=left_padding.device) - left_padding[:, None]
    return encoding(0, end, None).to(embeddings.dtype)[places.clamp_min(0)]  # type: ignore[no-any-return]
