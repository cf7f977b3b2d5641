"""What a family of encoders or decoders is: a config that builds one."""

from typing import ClassVar, Self

from dragoman.base.config import Config
from dragoman.models.interface import Decoder, Encoder
from dragoman.nn.dropout import DropoutConfig
from dragoman.nn.embedding import Embedding, Projection
from dragoman.nn.positions.scheme import PositionScheme
from dragoman.nn.positions.union import NoPositionsConfig


class Family(Config):
    """default_positions: where the model names no scheme. attends_itself: whether there is self-attention in it.

    compilable: whether it has layers that torch.compile gains from.
    """

    default_positions: ClassVar[PositionScheme] = NoPositionsConfig()
    attends_itself: ClassVar[bool] = False
    compilable: ClassVar[bool] = False

    def shallow(self) -> Self:
        """The same with a single layer: all layers are alike, so where it can be built, this can."""
        return self.model_copy(update={"layers": 1}) if "layers" in type(self).model_fields else self


class EncoderFamily(Family):
    """The base of every encoder's config."""

    def build(self, embedding: Embedding, width: int, dropout: DropoutConfig, positions: PositionScheme) -> Encoder:
        """An nn.Module that keeps the `Encoder` promise. Raises ConfigError for settings that do not go together.

        embedding: of source tokens, or of vectors where the source is no text, absolute positions joined; width: d, of
        its memory too; positions: the scheme, for what it does inside self-attention.
        """
        raise NotImplementedError


class DecoderFamily(Family):
    """The base of every decoder's config."""

    def build(
        self,
        embedding: Embedding,
        projection: Projection,
        width: int,
        dropout: DropoutConfig,
        positions: PositionScheme,
    ) -> Decoder:
        """An nn.Module that keeps the `Decoder` promise. Raises ConfigError for settings that do not go together.

        embedding: of target tokens, absolute positions joined; projection: reads hidden states of `width`, which is
        the width of the encoder's memory too.
        """
        raise NotImplementedError
