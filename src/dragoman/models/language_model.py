"""A decoder alone: a model of what follows a text."""

from math import inf
from typing import Any, Literal

import torch
from pydantic import Field, ValidationError, field_validator, model_validator
from torch import Tensor, nn

from dragoman.base.config import Config
from dragoman.base.errors import ConfigError
from dragoman.models.assembly import check_written, chosen_scheme, initialise_linear_layers, naming, unfilled
from dragoman.models.families import DecoderConfig
from dragoman.models.family import DecoderContext
from dragoman.models.interface import Trial
from dragoman.models.limits import LengthLimit
from dragoman.models.output import ProjectedOutput
from dragoman.models.transformer import TransformerDecoderConfig
from dragoman.nn.dropout import DropoutConfig
from dragoman.nn.embedding import Embedding, Projection, token_table
from dragoman.nn.positions.union import PositionsConfig
from dragoman.text.special import BOS
from dragoman.text.tokenizers import Tokenizers

_FEW = 8


def _transformer(width: int, layers: int, heads: int, dropout: float, **more: Any) -> dict[str, Any]:
    stack = {"layers": layers, "heads": heads, "feedforward": 4 * width, "norm": "pre", "activation": "gelu"}
    decoder = {"kind": "transformer", "cross_attention": None, **stack}
    return {"width": width, "decoder": decoder, "dropout": dropout, **more}


_ROTARY = {"positions": {"kind": "rotary"}}
_NO_SOURCE = {"attention": None, "bridge": "none"}

PRESETS: dict[str, dict[str, Any]] = {
    "tiny": _transformer(128, 4, 4, 0.2, **_ROTARY),
    "small": _transformer(256, 6, 8, 0.1, **_ROTARY),
    "medium": _transformer(512, 8, 8, 0.1, **_ROTARY),
    # Radford et al. 2018 (GPT), and the width and depth of GPT-2's second size (Radford et al. 2019)
    "base": _transformer(768, 12, 12, 0.1, positions={"kind": "learned", "limit": 1024}),
    "large": _transformer(1024, 24, 16, 0.1, positions={"kind": "learned", "limit": 1024}),
    "lstm": {
        "width": 512,
        "decoder": {"kind": "recurrent", "cell": "lstm", "layers": 2, **_NO_SOURCE},
        "dropout": 0.3,
    },
}

# What `auto` chooses from, with the most tokens of text that a model of that size is meant for.
AUTO_PRESETS = {"tiny": 10_000_000, "small": 100_000_000, "medium": 1_000_000_000, "base": inf}


class LanguageModelConfig(Config):
    """The assembled model. `preset` gives values that the other keys override one by one."""

    kind: Literal["decoder_only"] = "decoder_only"
    preset: str | None = Field(
        "auto",
        description="tiny, small, medium, base (12 × 768), large (24 × 1024) or lstm: values for all that is not set; "
        "auto: by the size of the corpus",
    )
    width: int = Field(256, ge=2, description="model width d: embeddings and layer inputs")
    decoder: DecoderConfig = Field(
        TransformerDecoderConfig(cross_attention=None), description="what writes; it attends no source"
    )
    positions: PositionsConfig | None = Field(
        None,
        description="the position scheme; left out: the preset's; null: sinusoidal for a Transformer, else none",
        json_schema_extra={"kind": "sinusoidal"},
    )
    dropout: DropoutConfig = Field(DropoutConfig(), description="dropout rates; a number sets embedding and residual")
    tie_projection: bool = Field(True, description="the vocabulary projection is the embedding table")

    @classmethod
    def usual_kinds(cls, settings: dict[str, Any]) -> dict[str, str]:
        """A preset says of which kind decoder and positions are."""
        preset = PRESETS.get(str(settings.get("preset")), {})
        return {part: preset[part]["kind"] for part in ("decoder", "positions") if part in preset}

    @model_validator(mode="before")
    @classmethod
    def _fill_from_preset(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        preset = values.get("preset", "auto")
        if preset not in (None, "auto") and preset not in PRESETS:
            raise ValueError(f"there is no preset '{preset}'; choose one of {', '.join(PRESETS)}")
        usual = PRESETS.get(preset, {})
        filled = {**usual, **values}
        decoder = filled.get("decoder")
        if isinstance(decoder, dict):
            kind = decoder.get("kind", usual.get("decoder", {}).get("kind", "transformer"))
            filled["decoder"] = {**_without_source(kind), **_of_kind(usual, kind), **decoder}
            if kind != usual.get("decoder", {}).get("kind", kind) and "positions" not in values:
                filled.pop("positions", None)
        if isinstance(filled.get("dropout"), dict) and "dropout" in usual:
            rate = usual["dropout"]
            filled["dropout"] = {"embedding": rate, "residual": rate, **filled["dropout"]}
        return filled

    @field_validator("dropout", mode="before")
    @classmethod
    def _spread_one_rate(cls, value: Any) -> Any:
        return {"embedding": value, "residual": value} if isinstance(value, int | float) else value

    @model_validator(mode="after")
    def _can_be_built(self) -> "LanguageModelConfig":
        """Parts that do not go together are refused here, before any data are read: one layer is built, unfilled."""
        try:
            with unfilled():
                DecoderOnly(self.model_copy(update={"decoder": self.decoder.shallow()}), _FEW)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return self

    def resolved(self, tokens: int) -> "LanguageModelConfig":
        """With `preset: auto` replaced by the preset for so many tokens of text.

        Raises ConfigError where what is set does not go with that preset's values.
        """
        if self.preset != "auto":
            return self
        preset = next(name for name, most in AUTO_PRESETS.items() if tokens <= most)
        try:
            return LanguageModelConfig.model_validate({**self.model_dump(exclude_unset=True), "preset": preset})
        except ValidationError as error:
            reasons = "; ".join(detail["msg"].removeprefix("Value error, ") for detail in error.errors())
            raise ConfigError(
                f"model.preset=auto is {preset} for {tokens:,} tokens, and that does not go with the model's other "
                f"settings: {reasons}; or choose another preset"
            ) from None

    def build(self, size: int) -> "DecoderOnly":
        """A freshly initialised model for a vocabulary of `size` entries, drawn from torch's default generator."""
        return DecoderOnly(self, size)

    def build_for(self, tokenizers: Tokenizers) -> "DecoderOnly":
        """As `build`, for the target's vocabulary of these."""
        return self.build(tokenizers.target.size)


class DecoderOnly(nn.Module):
    """A decoder that reads no source, with its embedding and projection. limit: of the texts that it can read."""

    def __init__(self, config: LanguageModelConfig, size: int) -> None:
        super().__init__()
        width = config.width
        table = token_table(size, width)
        projection = Projection(table.weight if config.tie_projection else token_table(size, width).weight)
        scheme = chosen_scheme(config.positions, config.decoder, "decoder")
        check_written(scheme, "positions")
        embedding = Embedding(table, scheme.embedded(width), config.dropout.embedding)
        self.limit = LengthLimit("target", embedding.positions.limit, "model.positions.limit")
        with naming("decoder"):
            self.decoder = config.decoder.build(DecoderContext(embedding, width, config.dropout, scheme, projection))
        initialise_linear_layers(self)

    @property
    def limits(self) -> tuple[LengthLimit]:
        """The only one."""
        return (self.limit,)

    def trial(self, length: int) -> Trial:
        """A text of `length` tokens."""
        device = self.decoder.projection.weight.device
        return Trial((), torch.full((1, length), BOS, dtype=torch.int64, device=device))

    def remember(self, source: tuple[Tensor, ...]) -> None:
        """Nothing."""

    def forward(self, inputs: Tensor) -> ProjectedOutput:
        """inputs (B, T) int64 → what follows each of them."""
        output, _ = self.decoder.step(inputs, self.decoder.start(None))
        return output


def _without_source(kind: str) -> dict[str, Any]:
    """The settings by which a decoder of a kind attends no source, where somebody sets other ones of it."""
    if kind == "recurrent":
        return dict(_NO_SOURCE)
    return {"cross_attention": None} if kind in ("transformer", "bytenet") else {}


def _of_kind(preset: dict[str, Any], kind: str) -> dict[str, Any]:
    decoder: dict[str, Any] = preset.get("decoder", {})
    return decoder if decoder.get("kind") == kind else {}
