"""What a position scheme is: a config that says where it acts, beside the word vectors or inside self-attention."""

from typing import ClassVar

from torch import Tensor, nn

from dragoman.base.settings.config import Config


class PositionScheme(Config):
    """The base of all schemes; a scheme overrides `embedded`, or `related`, and says nothing of the other."""

    needs_length: ClassVar[bool] = False
    """Whether a token's vector depends on how long the text is, which a decoder does not know."""

    inside_attention: ClassVar[bool] = False
    """Whether the scheme acts inside self-attention, which some encoders and decoders do not have."""

    def build_embedding(self, width: int) -> "PositionEmbedding":
        """What is done to token vectors of `width` before the first layer; here nothing."""
        return PositionEmbedding()

    def build_relative(
        self, heads: int, query_width: int, key_width: int, value_width: int
    ) -> "RelativePositions | None":
        """What is done inside one self-attention of so many heads; here nothing.

        Widths are those of one head. Called once a layer, so that each layer has parameters of its own. Raises
        ConfigError for widths that the scheme cannot use.
        """
        return None


class PositionEmbedding(nn.Module):
    """Joins positions to token vectors. This one leaves them alone: the scheme `none`, and those inside attention."""

    limit: int | None = None
    """Positions from here on have no vector: the longest text in tokens, None where any length will do."""

    def embed(self, embeddings: Tensor, start: int, mask: Tensor | None, left_padding: Tensor | None = None) -> Tensor:
        """embeddings (B, T, d) of the tokens at positions start … start+T−1 → (B, T, d).

        mask: (B, T) bool, True at tokens, or None where all are; only the whole text's tells its length. left_padding:
        (B,) int64, what is taken off each row's positions; below 0 they are padding's, and any will do.
        """
        return embeddings


class RelativePositions(nn.Module):
    """What a scheme does inside one self-attention; a scheme overrides the hooks that it needs.

    Heads are dimension 1 of every tensor. Between them and the last two dimensions there may be others, of blocks.
    """

    acts_on_scores: bool = False
    acts_on_values: bool = False

    def rotate(self, vectors: Tensor, start: int, left_padding: Tensor | None = None) -> Tensor:
        """Queries or keys (B, h, T, width) that stand at positions start … start+T−1, before they are compared.

        left_padding: (B,) int64, what is taken off each row's positions, as in `PositionEmbedding.embed`.
        """
        return vectors

    def score(self, queries: Tensor, offsets: Tensor) -> Tensor:
        """What is added to the scores: queries (B, h, …, T, d_q), offsets (T, S) int64 = key's − query's position.

        The result broadcasts to (B, h, …, T, S). Asked only where `acts_on_scores`.
        """
        raise NotImplementedError

    def value(self, weights: Tensor, offsets: Tensor) -> Tensor:
        """What is added to the weighted values: weights (B, h, …, T, S) → (B, h, …, T, d_v).

        Asked only where `acts_on_values`.
        """
        raise NotImplementedError
