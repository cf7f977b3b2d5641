"""The interface of position schemes: configs of terms joined to the embeddings or used inside self-attention."""

from typing import ClassVar

from torch import Tensor, nn

from dragoman.base.settings.config import Config


class PositionScheme(Config):
    """Base class of position schemes. A scheme overrides `build_embedding` or `build_relative`."""

    needs_length: ClassVar[bool] = False
    """Whether a token's vector depends on the length of the text, which is unknown in a decoder."""

    inside_attention: ClassVar[bool] = False
    """Whether the scheme acts inside self-attention, which not all encoders and decoders have."""

    def build_embedding(self, width: int) -> "PositionEmbedding":
        """Build the module that joins positions to token vectors of `width`. The base class leaves them unchanged."""
        return PositionEmbedding()

    def build_relative(
        self, heads: int, query_width: int, key_width: int, value_width: int
    ) -> "RelativePositions | None":
        """Build the terms inside one self-attention layer with `heads` heads. The base class returns None.

        Widths are those of one head. Called once per layer, so that each layer has its own parameters. Raises
        ConfigError for widths that the scheme cannot use.
        """
        return None


class PositionEmbedding(nn.Module):
    """Joins positions to token vectors. The base class, for schemes without such vectors, leaves them unchanged."""

    limit: int | None = None
    """The longest supported text in tokens, None if there is no limit."""

    def embed(self, embeddings: Tensor, start: int, mask: Tensor | None, left_padding: Tensor | None = None) -> Tensor:
        """embeddings (B, T, d) of the tokens at positions start … start+T−1 → (B, T, d).

        mask: (B, T) bool, False at padding, or None; it gives the length of a text only if it covers the whole text.
        left_padding: (B,) int64, subtracted from each row's positions; negative results are padding, with any vector.
        """
        return embeddings


class RelativePositions(nn.Module):
    """The terms of a scheme inside one self-attention layer. A scheme overrides the methods that it needs.

    Heads are dimension 1 of every tensor. There may be block dimensions between them and the last two.
    """

    acts_on_scores: bool = False
    acts_on_values: bool = False

    def rotate(self, vectors: Tensor, start: int, left_padding: Tensor | None = None) -> Tensor:
        """Transform queries or keys (B, h, T, width) at positions start … start+T−1 before they are compared.

        left_padding: (B,) int64, subtracted from each row's positions, as in `PositionEmbedding.embed`.
        """
        return vectors

    def score_bias(self, queries: Tensor, offsets: Tensor) -> Tensor:
        """Return the term to add to the scores, broadcastable to (B, h, …, T, S). Called only if `acts_on_scores`.

        queries: (B, h, …, T, d_q). offsets: (T, S) int64, the key's position minus the query's.
        """
        raise NotImplementedError

    def value_bias(self, weights: Tensor, offsets: Tensor) -> Tensor:
        """Return the term to add to the weighted values: weights (B, h, …, T, S) → (B, h, …, T, d_v).

        Called only if `acts_on_values`.
        """
        raise NotImplementedError
