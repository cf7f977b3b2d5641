"""The tables of an encoder or decoder in the library's memory layout: token, segment and position vectors, and rotary
angles.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dragoman.base.errors import ConfigError
from dragoman.models.families.transformer import TransformerDecoder, TransformerEncoder
from dragoman.native import library
from dragoman.nn.embedding import Embedding, occur_in_both, segment_numbers
from dragoman.nn.factors import FactoredTokens
from dragoman.nn.positions.absolute import Added, Concatenated
from dragoman.nn.positions.naive import Fraction
from dragoman.nn.positions.rotary import Rotary, rotary_angles
from dragoman.nn.positions.scheme import PositionEmbedding

Floats = NDArray[np.float32]


class UnsupportedModelError(ConfigError):
    """Raised for a model with a part that the native engine does not support."""


def padded_size(count: int) -> int:
    """Round up to a multiple of 16, the number of floats in the widest register."""
    return -(-count // library.LANES) * library.LANES


def pad_array(array: Floats, *shape: int) -> Floats:
    """Return the array, padded with zeros to `shape`: the array itself if it has this shape."""
    if array.shape == shape:
        return array
    result = np.zeros(shape, np.float32)
    result[tuple(slice(0, size) for size in array.shape)] = array
    return result


def to_floats(tensor: Tensor) -> Floats:
    """Return the tensor as float32 on the CPU."""
    array: Floats = tensor.detach().float().cpu().numpy()
    return array


def token_vectors(embedding: Embedding) -> tuple[Floats, float]:
    """Return a vector (V, d) for each token, and a factor: the first layer's inputs without positions and segments.

    The vectors are those of the model itself if these are floats on the CPU. If `embedding.starts_with_end`, the input
    of BOS is that of EOS. Raises UnsupportedModelError.
    """
    if type(embedding) is not Embedding:
        raise UnsupportedModelError(
            "the native engine does not support the generator of a model that detects replaced tokens (model.generator)"
        )
    tokens, positions = embedding.tokens, embedding.positions
    if not isinstance(tokens, nn.Embedding):
        raise UnsupportedModelError("the native engine reads text, but the sources of this model are vectors")
    if isinstance(tokens, FactoredTokens):
        raise UnsupportedModelError("the native engine does not support the factors of words (model.factors)")
    if type(positions) not in (PositionEmbedding, Added, Concatenated):
        raise UnsupportedModelError("the native engine does not support the positions of this model (model.positions)")
    if isinstance(getattr(positions, "encoding", None), Fraction):
        raise UnsupportedModelError("the native engine does not support model.positions.kind=fraction")
    return _layer_inputs(embedding, tokens.weight.detach().float()), embedding.scale


def group_vectors(embedding: Embedding) -> Floats | None:
    """Return the vectors that are added to the tokens of each group, (groups, d); None if nothing is added.

    Tokens of the same segment are a group. If matches have a vector, they are two: first those without a match.
    """
    if embedding.segments is None and embedding.matches is None:
        return None
    groups = torch.zeros(1, embedding.tokens.embedding_dim)
    if embedding.segments is not None:
        groups = embedding.segments.weight.detach().float()
    if embedding.matches is not None:
        match = embedding.matches.weight.detach().float() * embedding.scale
        groups = torch.stack((groups, groups + match.to(groups.device)), 1).flatten(0, 1)
    return _layer_inputs(embedding, groups)


def group_numbers(embedding: Embedding, tokens: Tensor) -> Tensor | None:
    """Return the row of `group_vectors` for each token (B, S); None if nothing is added."""
    if embedding.segments is None and embedding.matches is None:
        return None
    segments = 1 if embedding.segments is None else embedding.segments.num_embeddings
    numbers = segment_numbers(tokens, segments)
    return numbers if embedding.matches is None else 2 * numbers + occur_in_both(tokens)


def _layer_inputs(embedding: Embedding, vectors: Tensor) -> Floats:
    """Return vectors (N, d), multiplied by their part of the matrix if positions are concatenated with tokens."""
    positions = embedding.positions
    if isinstance(positions, Concatenated):
        vectors = vectors @ positions.back.weight.detach().float()[:, : vectors.size(1)].T
    return to_floats(vectors)


class PositionTables:
    """Tables of position vectors and rotary angles, which grow with the longest input."""

    def __init__(self, stack: TransformerEncoder | TransformerDecoder) -> None:
        first: Any = stack.layers[0]
        attention = first.self_attention
        self._embedding = stack.embedding
        relation = getattr(attention, "relation", None)
        self._rotary = relation if isinstance(relation, Rotary) else None
        self._width = 0 if self._rotary is None else attention.key.out_features // attention.kv_heads
        self._table = library.Positions()

    def table(self, length: int) -> library.Positions:
        """Return tables for at least `length` positions, or for all of them if the model has fewer.

        The returned tables are never modified.
        """
        if length > self._table.length:
            limit, size = self._embedding.positions.limit, max(256, 1 << (length - 1).bit_length())
            self._table = self._build(size if limit is None else min(size, limit))
        return self._table

    @torch.no_grad()
    def _build(self, length: int) -> library.Positions:
        positions, width = self._embedding.positions, self._embedding.tokens.embedding_dim
        table = library.Positions(length=length)
        table.arrays = []
        if type(positions) is not PositionEmbedding:
            zeros = torch.zeros(1, length, width, device=self._embedding.tokens.weight.device)
            vectors = positions.embed(zeros, 0, None)[0]  # (L, width)
            table.arrays.append(pad_array(to_floats(vectors), length, padded_size(width)))
            table.vectors = table.arrays[-1].ctypes.data
        if self._rotary is not None:
            angles = rotary_angles(length, self._width, self._rotary.base, torch.device("cpu"))  # (L, width / 2)
            table.arrays.append(np.ascontiguousarray(to_floats(torch.cat((angles.cos(), angles.sin()), 1))))
            table.angles, table.angles_width = table.arrays[-1].ctypes.data, self._width
        return table
