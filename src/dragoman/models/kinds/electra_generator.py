"""The generator of ELECTRA: a small masked language model that draws the tokens that the encoder has to detect."""

from typing import Self

from pydantic import Field, model_validator
from torch import Tensor, nn

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import Config
from dragoman.models.families.family import EncoderFamily
from dragoman.models.families.transformer import TransformerEncoderConfig
from dragoman.models.heads.masked_language_model import MaskedLanguageModelHeadConfig
from dragoman.nn.embedding import Embedding


class GeneratorConfig(Config):
    """A masked language model, smaller than the encoder that it helps to pre-train, whose embeddings it shares (Clark
    et al. 2020, section 3.2).

    YAML: `model: {generator: {width: 0.25}}`.
    """

    width: float = Field(
        0.25,
        gt=0,
        le=1,
        description="Width of the layers, number of attention heads and inner width of the feed-forward networks, as a "
        "fraction of the encoder's (paper: 1/4 to 1/2).",
    )
    layers: float = Field(1.0, gt=0, le=1, description="Number of layers, as a fraction of the encoder's (paper: 1).")
    head: MaskedLanguageModelHeadConfig = Field(
        MaskedLanguageModelHeadConfig(), description="Head, which predicts the masked tokens."
    )

    @model_validator(mode="after")
    def _check_head(self) -> Self:
        if not self.head.transform:
            raise ValueError(
                "generator.head.transform=false: the layer that it removes maps the generator's states to the width of "
                "the token vectors: remove this setting"
            )
        if self.head.next_sentence:
            raise ValueError("generator.head.next_sentence: a generator predicts only tokens: remove this setting")
        return self

    def scale(self, encoder: EncoderFamily, width: int) -> tuple[TransformerEncoderConfig, int]:
        """Return the settings of the generator's encoder, and its width.

        The width of an attention head is even, as rotary positions require. encoder: the encoder to pre-train, of width
        `width`. Raises ConfigError if it is not a Transformer.
        """
        if not isinstance(encoder, TransformerEncoderConfig):
            raise ConfigError(
                f"a generator needs a Transformer encoder, but model.encoder is of kind "
                f"{getattr(encoder, 'kind', '?')}: choose another encoder, or remove model.generator"
            )
        heads = max(1, round(self.width * encoder.heads))
        own_width = heads * 2 * max(1, round(self.width * width / (2 * heads)))
        sizes = {
            "layers": max(1, round(self.layers * encoder.layers)),
            "heads": heads,
            "feedforward": max(1, round(self.width * encoder.feedforward)),
        }
        return encoder.model_copy(update=sizes), own_width


class SharedEmbedding(nn.Module):
    """The embeddings of the pre-trained encoder, projected to the width of the generator if it is smaller."""

    def __init__(self, embedding: Embedding, encoder_width: int, width: int) -> None:
        super().__init__()
        self._shared = (embedding,)  # a tuple, because the module and its parameters belong to the encoder
        self.projection = nn.Linear(encoder_width, width) if width != encoder_width else None

    @property
    def shared(self) -> Embedding:
        """The embeddings of the pre-trained encoder."""
        return self._shared[0]

    def forward(self, tokens: Tensor, mask: Tensor | None = None, packed: bool = False) -> Tensor:
        """Embed tokens (B, S) int64 → (B, S, width). See `Embedding`."""
        vectors: Tensor = self.shared(tokens, mask=mask, packed=packed)
        return vectors if self.projection is None else self.projection(vectors)
