"""The interface of position schemes, which act on the embeddings or inside self-attention."""

from collections.abc import Iterable
from typing import ClassVar

from torch import Tensor, nn

from dragoman.base.settings.config import Config


class PositionScheme(Config):
    """The base class of position schemes. Subclasses override `build_embedding` or `build_relative`."""

    needs_length: ClassVar[bool] = False
    """Whether position vectors depend on the length of the text, which is unknown in a decoder."""

    inside_attention: ClassVar[bool] = False
    """Whether the scheme acts inside self-attention, which not all encoders and decoders have."""

    def build_embedding(self, width: int) -> "PositionEmbedding":
        """Build the module that adds positions to token vectors of `width`.

        The module of the base class returns the token vectors unchanged.
        """
        return PositionEmbedding()

    def build_relative(
        self, heads: int, query_width: int, key_width: int, value_width: int
    ) -> "RelativePositions | None":
        """Build the terms inside a self-attention layer with `heads` heads. The base class returns None.

        It is called once per layer, so that layers do not share parameters. query_width, key_width, value_width: widths
        of a single head. Raises ConfigError for widths that the scheme does not support.
        """
        return None


class PositionEmbedding(nn.Module):
    """A module that adds positions to token vectors.

    The base class, used by schemes that do not act on embeddings, returns the token vectors unchanged.
    """

    limit: int | None = None
    """Maximum length of a text in tokens; None if there is no limit."""

    def embed(self, embeddings: Tensor, start: int, mask: Tensor | None, left_padding: Tensor | None = None) -> Tensor:
        """Add positions to the embeddings (B, T, d) of tokens at positions start … start+T−1: (B, T, d).

        mask: (B, T) bool, False at padding, or None. Schemes that need the length of a text require a mask of the whole
        text. left_padding: (B,) or (B, T) int64, subtracted from the positions of each row or token. Negative positions
        are padding, for which the result is undefined.
        """
        return embeddings


class RelativePositions(nn.Module):
    """The terms of a position scheme inside a self-attention layer. Subclasses override the methods that they need.

    Dimension 1 of every tensor is the heads. There may be block dimensions between it and the last two.
    """

    acts_on_scores: bool = False
    acts_on_values: bool = False
    shared: bool = False
    """Whether all layers of an encoder or decoder use the same module."""

    def rotate(self, vectors: Tensor, start: int, left_padding: Tensor | None = None) -> Tensor:
        """Transform queries or keys (B, h, T, width) at positions start … start+T−1 before they are compared.

        left_padding: (B,) int64, subtracted from the positions of each row, as in `PositionEmbedding.embed`.
        """
        return vectors

    def score_bias(self, queries: Tensor, offsets: Tensor) -> Tensor:
        """Return the term to add to the scores, broadcastable to (B, h, …, T, S). Called only if `acts_on_scores`.

        queries: (B, h, …, T, d_q). offsets: (T, S) int64, the position of the key minus that of the query.
        """
        raise NotImplementedError

    def value_bias(self, weights: Tensor, offsets: Tensor) -> Tensor:
        """Return the term (B, h, …, T, d_v) to add to the weighted values. Called only if `acts_on_values`.

        weights: (B, h, …, T, S). offsets: as in `score_bias`.
        """
        raise NotImplementedError


def share_relative_positions(layers: Iterable[nn.Module]) -> None:
    """Replace the terms of all layers by those of the first layer if the position scheme shares them."""
    attentions = [getattr(layer, "self_attention", None) for layer in layers]
    first = getattr(attentions[0], "relation", None)
    if isinstance(first, RelativePositions) and first.shared:
        for attention in attentions[1:]:
            attention.relation = first  # type: ignore[union-attr]
