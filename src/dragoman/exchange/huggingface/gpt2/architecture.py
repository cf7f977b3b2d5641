"""Converts the architecture of GPT-2 models between `config.json` and dragoman's `model` section."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from dragoman.base.errors import ModelError
from dragoman.exchange.huggingface.files import CONFIG
from dragoman.exchange.huggingface.round_trip import check_same_settings
from dragoman.exchange.huggingface.settings import (
    ACTIVATION_NAMES,
    ACTIVATIONS,
    FolderSettings,
    check_activation,
    check_architecture,
    parse_json_settings,
    parse_section,
)
from dragoman.models.families.transformer import TransformerDecoderConfig
from dragoman.models.kinds.decoder_only import LanguageModelConfig

ARCHITECTURES = ("GPT2LMHeadModel", "GPT2Model")
_NOT_COMPARED = ("preset",)

Rate = Field(0.1, ge=0, lt=1)


class GPT2Settings(FolderSettings):
    """The keys of `config.json` that determine the computation, with Hugging Face's defaults. Other keys are ignored.

    The last three keys must have their default values, because other values describe models of another structure.
    """

    vocab_size: int = Field(50257, ge=1)
    n_positions: int = Field(1024, ge=1)
    n_embd: int = Field(768, ge=2)
    n_layer: int = Field(12, ge=1)
    n_head: int = Field(12, ge=1)
    n_inner: int | None = Field(None, ge=1)
    activation_function: str = "gelu_new"
    resid_pdrop: float = Rate
    embd_pdrop: float = Rate
    attn_pdrop: float = Rate
    layer_norm_epsilon: float = Field(1e-5, gt=0)
    bos_token_id: int | None = None
    eos_token_id: int | None = None
    tie_word_embeddings: bool = True
    scale_attn_weights: Literal[True] = True
    scale_attn_by_inverse_layer_idx: Literal[False] = False
    add_cross_attention: Literal[False] = False


def read_settings(content: Mapping[str, Any], path: Path) -> GPT2Settings:
    """Return the settings in the content of `config.json`. Raises ModelError for invalid or unsupported values."""
    settings = parse_json_settings(content, GPT2Settings, path)
    check_activation(settings.activation_function, "activation_function", path)
    check_architecture(settings, ARCHITECTURES, path)
    return settings


def model_section(
    settings: GPT2Settings, starts_with_end: bool, excluded: Sequence[int], path: Path
) -> LanguageModelConfig:
    """Return the `model` section for a GPT-2 model.

    starts_with_end: whether texts start with the symbol that ends them. excluded: ids of the special symbols that
    GPT-2's vocabulary does not have. Raises ModelError if the settings are inconsistent.
    """
    section = {
        "preset": None,
        "width": settings.n_embd,
        "decoder": {
            "kind": "transformer",
            "layers": settings.n_layer,
            "heads": settings.n_head,
            "feedforward": settings.n_inner or 4 * settings.n_embd,
            "activation": ACTIVATIONS[settings.activation_function],
            "norm": "pre",
            "normalisation": {"kind": "layer", "epsilon": settings.layer_norm_epsilon},
        },
        "positions": {"kind": "learned", "limit": settings.n_positions},
        "dropout": {
            "embedding": settings.embd_pdrop,
            "residual": settings.resid_pdrop,
            "attention": settings.attn_pdrop,
        },
        "tie_projection": settings.tie_word_embeddings,
        "scale_embeddings": False,
        "start_symbol": "eos" if starts_with_end else "bos",
        "excluded_tokens": list(excluded),
    }
    return parse_section(section, LanguageModelConfig, path)


def config_json(model: LanguageModelConfig, size: int, excluded: Sequence[int]) -> dict[str, Any]:
    """Return the content of `config.json` without the ids of special symbols.

    size: number of entries of GPT-2's vocabulary. excluded: as in `model_section`. Raises ModelError with the name and
    value of every setting that GPT-2 does not support.
    """
    decoder = model.decoder
    if not isinstance(decoder, TransformerDecoderConfig):
        raise ModelError(f"GPT-2 cannot express this model: model.decoder.kind is {decoder.kind}, not transformer")
    content = {
        "architectures": [ARCHITECTURES[0]],
        "model_type": "gpt2",
        "vocab_size": size,
        "n_positions": getattr(model.positions, "limit", None) or 1024,
        "n_embd": model.width,
        "n_layer": decoder.layers,
        "n_head": decoder.heads,
        "n_inner": decoder.feedforward,
        "activation_function": ACTIVATION_NAMES.get(decoder.activation, "gelu_new"),
        "resid_pdrop": model.dropout.residual,
        "embd_pdrop": model.dropout.embedding,
        "attn_pdrop": model.dropout.attention,
        "layer_norm_epsilon": getattr(decoder.normalisation, "epsilon", 1e-5),
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "add_cross_attention": False,
        "tie_word_embeddings": model.tie_projection,
    }
    read = model_section(GPT2Settings.model_validate(content), model.start_symbol == "eos", excluded, Path(CONFIG))
    check_same_settings(model, read, "GPT-2", _NOT_COMPARED)
    return content
