"""An encoder and a decoder as one model, with their embeddings tied or apart."""

from typing import Any

from pydantic import Field, field_validator, model_validator
from torch import Tensor, nn

from dragoman.base.config import Config
from dragoman.models.interface import Memory, Output
from dragoman.models.transformer import DropoutConfig, TransformerConfig, TransformerDecoder, TransformerEncoder
from dragoman.nn.embedding import Embedding, Projection, token_table
from dragoman.nn.positions import Sinusoidal, SinusoidalConfig


def _layers(layers: int, heads: int, feedforward: int, norm: str = "post") -> dict[str, Any]:
    stack = {"layers": layers, "heads": heads, "feedforward": feedforward, "norm": norm}
    return {"encoder": dict(stack), "decoder": dict(stack)}


PRESETS: dict[str, dict[str, Any]] = {
    # The sizes of Transformer-Tiny (Wu et al. 2021, "Good for Misconceived Reasons"); norm and dropout by measurement:
    # with its post-norm and dropout of 0.3 it takes far longer to learn (docs/EXPERIMENTS.md).
    "tiny": {"width": 128, **_layers(4, 4, 256, "pre"), "dropout": 0.2},
    "small": {"width": 256, **_layers(3, 4, 1024), "dropout": 0.1},
    # Vaswani et al. 2017, table 3
    "base": {"width": 512, **_layers(6, 8, 2048), "dropout": 0.1},
    "big": {"width": 1024, **_layers(6, 16, 4096), "dropout": 0.3},
}


class ModelConfig(Config):
    """The assembled model. `preset` gives values that the other keys override one by one."""

    preset: str | None = Field(
        "auto", description="tiny, small, base or big: values for all that is not set; auto: by the size of the corpus"
    )
    width: int = Field(256, ge=2, description="model width d: embeddings and layer inputs (paper: 512)")
    encoder: TransformerConfig = Field(TransformerConfig(), description="the source side's layers")
    decoder: TransformerConfig = Field(TransformerConfig(), description="the target side's layers")
    positions: SinusoidalConfig = Field(SinusoidalConfig(), description="the position scheme of both sides")
    dropout: DropoutConfig = Field(DropoutConfig(), description="dropout rates; a number sets embedding and residual")
    tie_embeddings: bool = Field(True, description="source and target share one table (needs a shared vocabulary)")
    tie_projection: bool = Field(True, description="the vocabulary projection is the target's embedding table")

    @model_validator(mode="before")
    @classmethod
    def _fill_from_preset(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        preset = values.get("preset", "auto")
        if preset in (None, "auto"):
            return values
        if preset not in PRESETS:
            raise ValueError(f"there is no preset '{preset}'; choose one of {', '.join(PRESETS)}")
        filled = {**PRESETS[preset], **values}
        for side in ("encoder", "decoder"):
            if isinstance(filled[side], dict):
                filled[side] = {**PRESETS[preset][side], **filled[side]}
        if isinstance(filled["dropout"], dict):
            rate = PRESETS[preset]["dropout"]
            filled["dropout"] = {"embedding": rate, "residual": rate, **filled["dropout"]}
        return filled

    @field_validator("dropout", mode="before")
    @classmethod
    def _spread_one_rate(cls, value: Any) -> Any:
        return {"embedding": value, "residual": value} if isinstance(value, int | float) else value

    @model_validator(mode="after")
    def _check_heads(self) -> "ModelConfig":
        for side in ("encoder", "decoder"):
            heads = getattr(self, side).heads
            if self.width % heads:
                raise ValueError(f"model.{side}.heads={heads} does not divide model.width={self.width}")
        return self


class Seq2Seq(nn.Module):
    """An encoder and a decoder. Built by `models.build.build_model`."""

    def __init__(self, config: ModelConfig, source_size: int, target_size: int) -> None:
        super().__init__()
        source = token_table(source_size, config.width)
        target = source if config.tie_embeddings else token_table(target_size, config.width)
        projection = Projection(
            target.weight if config.tie_projection else token_table(target_size, config.width).weight
        )
        rate = config.dropout.embedding
        read, write = (Embedding(table, Sinusoidal(config.positions, config.width), rate) for table in (source, target))
        self.encoder = TransformerEncoder(config.encoder, read, config.width, config.dropout)
        self.decoder = TransformerDecoder(config.decoder, write, projection, config.width, config.dropout)
        for stack in (self.encoder.layers, self.decoder.layers):
            for module in stack.modules():
                if isinstance(module, nn.Linear):
                    nn.init.xavier_uniform_(module.weight)
                    nn.init.zeros_(module.bias)

    def encode(self, tokens: Tensor, keep: Tensor) -> Memory:
        """tokens (B, S) int64, keep (B, S) bool → the memory that the decoder starts from."""
        return self.encoder(tokens, keep)  # type: ignore[no-any-return]

    def forward(self, source: Tensor, source_keep: Tensor, inputs: Tensor) -> Output:
        """Teacher forcing: read source (B, S) and target inputs (B, T), give what follows each of the T tokens."""
        output, _ = self.decoder.step(inputs, self.decoder.start(self.encode(source, source_keep)))
        return output
