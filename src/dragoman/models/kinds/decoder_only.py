"""A decoder-only language model."""

from math import inf
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from dragoman.base.packing import Packing
from dragoman.base.settings.config import kinds, union_members
from dragoman.models.families.family import (
    DecoderContext,
    DecoderFamily,
    check_decodable,
    prefix_errors,
    resolve_scheme,
)
from dragoman.models.families.transformer import TransformerDecoderConfig
from dragoman.models.families.union import DecoderConfig
from dragoman.models.initialisation import initialise_linear_layers
from dragoman.models.interface import Decoder, LengthLimit, Output, Trial
from dragoman.models.settings import ExcludedTokens, PresetSettings
from dragoman.nn.dropout import DropoutConfig
from dragoman.nn.embedding import Embedding, Projection, StartSymbol, token_table
from dragoman.nn.positions.union import NoPositionsConfig, PositionsConfig
from dragoman.text.symbols import BOS
from dragoman.text.tokenizers import VocabularySizes

_FAMILIES: dict[str, type[DecoderFamily]] = {
    kind: family for family in union_members(DecoderConfig) for kind in kinds(family)
}


def _transformer(width: int, layers: int, heads: int, dropout: float, **settings: Any) -> dict[str, Any]:
    stack = {"layers": layers, "heads": heads, "feedforward": 4 * width, "norm": "pre", "activation": "gelu"}
    return {"width": width, "decoder": {"kind": "transformer", **stack}, "dropout": dropout, **settings}


_ROTARY = {"positions": {"kind": "rotary"}}
PRESETS: dict[str, dict[str, Any]] = {
    "tiny": _transformer(128, 4, 4, 0.2, **_ROTARY),
    "small": _transformer(256, 6, 8, 0.1, **_ROTARY),
    "medium": _transformer(512, 8, 8, 0.1, **_ROTARY),
    # GPT (Radford et al. 2018)
    "base": _transformer(768, 12, 12, 0.1, positions={"kind": "learned", "limit": 1024}),
    # width and depth of GPT-2's second size (Radford et al. 2019)
    "large": _transformer(1024, 24, 16, 0.1, positions={"kind": "learned", "limit": 1024}),
    "lstm": {
        "width": 512,
        "decoder": {"kind": "recurrent", "cell": "lstm", "layers": 2},
        "dropout": 0.3,
    },
}

# The presets that `auto` selects from, each with its maximum corpus size in tokens.
AUTO_PRESETS = {"tiny": 10_000_000, "small": 100_000_000, "medium": 1_000_000_000, "base": inf}


class LanguageModelConfig(PresetSettings):
    """A language model. `preset` sets default values, which the other keys override."""

    presets: ClassVar = PRESETS
    automatic: ClassVar = AUTO_PRESETS
    size_unit: ClassVar = "tokens"
    families: ClassVar = ("decoder",)

    kind: Literal["decoder_only"] = "decoder_only"
    preset: str | None = Field(
        "auto",
        description="Preset that provides values for omitted settings: tiny, small, medium, base (12 layers of width "
        "768), large (24 layers of width 1024), lstm, or auto, which selects a preset by corpus size.",
    )
    width: int = Field(256, ge=2, description="Model width d: size of embeddings and layer inputs.")
    decoder: DecoderConfig = Field(
        TransformerDecoderConfig(cross_attention=None),
        description="Decoder, without attention to a source.",
    )
    positions: PositionsConfig | None = Field(
        None,
        description="Position scheme. If omitted, the preset's scheme is used. null: sinusoidal for a Transformer, "
        "none for other decoders.",
        json_schema_extra={"kind": "sinusoidal"},
    )
    dropout: DropoutConfig = Field(
        DropoutConfig(), description="Dropout rates. A single number sets embedding and residual."
    )
    tie_projection: bool = Field(True, description="Use the embedding table as the output projection.")
    scale_embeddings: bool = Field(True, description="Multiply token vectors by √d before positions are added.")
    start_symbol: StartSymbol = Field(
        "bos",
        description="Symbol before the first token of a text. bos: <s>, which has its own vector. eos: the end of the "
        "preceding text, as in GPT-2.",
    )
    excluded_tokens: ExcludedTokens = Field(
        (),
        description="Ids of special symbols that are never predicted, such as 0 (padding): their probability is 0.",
    )

    @property
    def packs(self) -> bool:
        """Whether the model can compute packed states; see `Packing`."""
        return self.decoder.packs

    @classmethod
    def add_implied_settings(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the settings with attention to a source disabled by default.

        Settings that enable it explicitly are kept, and `DecoderOnly` raises an error for them.
        """
        decoder = settings.get("decoder")
        if not isinstance(decoder, dict):
            return settings
        kind = decoder.get("kind", "transformer")
        defaults = _FAMILIES[kind].without_source if kind in _FAMILIES else {}
        return {**settings, "decoder": {**defaults, **decoder}}

    def build(self, size: int) -> "DecoderOnly":
        """Build the model for a vocabulary of `size` entries, initialised from torch's default generator."""
        return DecoderOnly(self, size)

    def build_for(self, sizes: VocabularySizes) -> "DecoderOnly":
        """Build the model for the target vocabulary; see `build`."""
        return self.build(sizes.target)


class DecoderOnly(nn.Module):
    """A decoder without a source, with its embedding and projection.

    limit: the maximum text length. unbounded: whether texts of any length can be processed, which requires a recurrent
    decoder without a position scheme.
    """

    def __init__(self, config: LanguageModelConfig, size: int) -> None:
        super().__init__()
        width = config.width
        table = token_table(size, width)
        weight = table.weight if config.tie_projection else token_table(size, width).weight
        projection = Projection(weight, excluded=config.excluded_tokens)
        scheme = resolve_scheme(config.positions, config.decoder, "decoder")
        check_decodable(scheme, "positions")
        embedding = Embedding(
            table,
            scheme.build_embedding(width),
            config.dropout.embedding,
            config.scale_embeddings,
            start_symbol=config.start_symbol,
        )
        self.limit = LengthLimit("target", embedding.positions.limit, "model.positions.limit")
        self.unbounded = config.decoder.recurrent and isinstance(scheme, NoPositionsConfig)
        with prefix_errors("decoder"):
            config.decoder.check_no_source()
            self.decoder = config.decoder.build(DecoderContext(embedding, width, config.dropout, scheme, projection))
        initialise_linear_layers(self)

    @property
    def limits(self) -> tuple[LengthLimit]:
        """The maximum text length."""
        return (self.limit,)

    def trial(self, length: int) -> Trial:
        """Return the model inputs for a text of `length` tokens."""
        device = self.decoder.projection.weight.device
        return Trial((), torch.full((1, length), BOS, dtype=torch.int64, device=device))

    def encode_source(self, source: tuple[Tensor, ...]) -> None:
        """Return None: a language model has no source."""

    def forward(self, inputs: Tensor, packing: Packing | None = None) -> Output:
        """Predict the token that follows each input token. inputs: (B, T) int64.

        packing: packs the states, if `LanguageModelConfig.packs`; None: they are padded.
        """
        return next_tokens(self.decoder, inputs, packing)


def next_tokens(decoder: Decoder, inputs: Tensor, packing: Packing | None = None) -> Output:
    """Return a decoder's predictions of the token that follows each input token, without a source.

    inputs: (B, T) int64. packing: packs the states, for decoders that can; None: they are padded.
    """
    state = decoder.start(None)
    if packing is None:
        return decoder.step(inputs, state)[0]
    return decoder.step(inputs, state, packing=packing)[0]  # type: ignore[call-arg]
