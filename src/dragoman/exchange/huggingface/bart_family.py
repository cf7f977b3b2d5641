"""The settings that BART, M2M-100 and Marian models have in common: Hugging Face's classes are variants of BART's."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field

from dragoman.base.errors import ModelError
from dragoman.base.log import info, warn
from dragoman.exchange.huggingface.settings import (
    ACTIVATIONS,
    FolderSettings,
    check_activation,
    check_architecture,
    parse_json_settings,
)
from dragoman.models.families.transformer import TransformerDecoderConfig, TransformerEncoderConfig
from dragoman.models.kinds.encoder_decoder import ModelConfig

_Rate = Field(0.0, ge=0, lt=1)


class BartFamilySettings(FolderSettings):
    """The keys of `config.json` that both classes have, with Hugging Face's defaults."""

    max_position_embeddings: int = Field(1024, ge=1)
    encoder_layers: int = Field(12, ge=1)
    encoder_ffn_dim: int = Field(4096, ge=1)
    encoder_attention_heads: int = Field(16, ge=1)
    decoder_layers: int = Field(12, ge=1)
    decoder_ffn_dim: int = Field(4096, ge=1)
    decoder_attention_heads: int = Field(16, ge=1)
    encoder_layerdrop: float = _Rate
    decoder_layerdrop: float = _Rate
    activation_function: str = "gelu"
    d_model: int = Field(1024, ge=2)
    dropout: float = Field(0.1, ge=0, lt=1)
    attention_dropout: float = _Rate
    activation_dropout: float = _Rate
    scale_embedding: bool = False
    tie_word_embeddings: bool = True

    def section(self) -> dict[str, Any]:
        """Return the settings of the `model` section that follow from these keys."""
        return {
            "preset": None,
            "width": self.d_model,
            "encoder": self._stack("encoder"),
            "decoder": self._stack("decoder"),
            "dropout": {
                "embedding": self.dropout,
                "residual": self.dropout,
                "attention": self.attention_dropout,
                "feedforward": self.activation_dropout,
            },
            "tie_projection": self.tie_word_embeddings,
            "scale_embeddings": self.scale_embedding,
        }

    def _stack(self, side: str) -> dict[str, Any]:
        return {
            "kind": "transformer",
            "layers": getattr(self, f"{side}_layers"),
            "heads": getattr(self, f"{side}_attention_heads"),
            "feedforward": getattr(self, f"{side}_ffn_dim"),
            "activation": ACTIVATIONS[self.activation_function],
        }


E = TypeVar("E", bound="EndStartSettings")


class EndStartSettings(BartFamilySettings):
    """The keys of the families whose decoders start with the end symbol: BART and M2M-100."""

    pad_token_id: int = 1
    bos_token_id: int = 0
    eos_token_id: int = 2
    decoder_start_token_id: int = 2


def read_end_start_settings(
    content: Mapping[str, Any], settings: type[E], architectures: tuple[str, ...], path: Path
) -> E:
    """Return the settings in the content of `config.json`.

    architectures: the supported classes of Hugging Face. Raises ModelError for invalid or unsupported values.
    """
    read = parse_json_settings(content, settings, path)
    check_activation(read.activation_function, "activation_function", path)
    check_architecture(read, architectures, path)
    if read.decoder_start_token_id != read.eos_token_id:
        raise ModelError(
            f"{path}: decoder_start_token_id is {read.decoder_start_token_id}, but only decoders that start with "
            f"the end symbol, {read.eos_token_id}, are supported"
        )
    if read.encoder_layerdrop or read.decoder_layerdrop:
        info(f"{path}: layer drop is ignored, because it affects training only")
    return read


def shared_json(model: ModelConfig, name: str, activations: Mapping[str, str]) -> dict[str, Any]:
    """Return the keys of `config.json` that both classes have, except the number of positions.

    name: name of the format, for messages. activations: the format's names of dragoman's activations. Any other
    activation is written as GELU, which the caller detects by reading the result. Raises ModelError if a side is not a
    Transformer.
    """
    encoder, decoder = model.encoder, model.decoder
    for side, stack in (("encoder", encoder), ("decoder", decoder)):
        if not isinstance(stack, TransformerEncoderConfig | TransformerDecoderConfig):
            raise ModelError(f"{name} cannot express this model: model.{side}.kind is {stack.kind}, not transformer")
    assert isinstance(encoder, TransformerEncoderConfig) and isinstance(decoder, TransformerDecoderConfig)
    return {
        "is_encoder_decoder": True,
        "num_hidden_layers": encoder.layers,
        **_stack_json("encoder", encoder),
        **_stack_json("decoder", decoder),
        "activation_function": activations.get(encoder.activation, "gelu"),
        "d_model": model.width,
        "dropout": model.dropout.residual,
        "attention_dropout": model.dropout.attention,
        "activation_dropout": model.dropout.feedforward,
        "scale_embedding": model.scale_embeddings,
        "tie_word_embeddings": model.tie_projection,
    }


def warn_of_single_dropout(model: ModelConfig, name: str) -> None:
    """Warn if the rate of dropout on embeddings is not written."""
    if model.dropout.embedding != model.dropout.residual:
        warn(
            f"{name} has a single dropout rate for residuals and embeddings: writing the rate of residuals, "
            f"{model.dropout.residual}"
        )


def _stack_json(side: str, stack: TransformerEncoderConfig | TransformerDecoderConfig) -> dict[str, Any]:
    return {
        f"{side}_layers": stack.layers,
        f"{side}_ffn_dim": stack.feedforward,
        f"{side}_attention_heads": stack.heads,
        f"{side}_layerdrop": 0.0,
    }
