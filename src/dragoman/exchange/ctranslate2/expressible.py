"""Checks whether CTranslate2 can compute a model.

`DECISIONS` covers every setting. A setting that is missing from it is rejected, so new settings cannot be overlooked.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dragoman.base.errors import ModelError
from dragoman.base.settings.config import Config
from dragoman.models.families.transformer import TransformerDecoderConfig, TransformerEncoderConfig
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.nn.attention.interface import AttentionSizes
from dragoman.nn.attention.scorers import DotConfig, ScaledDotConfig
from dragoman.nn.attention.soft import SoftAttentionConfig
from dragoman.nn.normalisation import LayerNormConfig, RMSNormConfig
from dragoman.nn.positions.learned import LearnedConfig
from dragoman.nn.positions.naive import IndexConfig, OneHotConfig
from dragoman.nn.positions.relative import RelativeConfig
from dragoman.nn.positions.rotary import RotaryConfig
from dragoman.nn.positions.sinusoidal import SinusoidalConfig
from dragoman.nn.positions.union import NoPositionsConfig

Decision = Callable[[Any], bool]
"""Returns whether CTranslate2 can express a value of a setting. Settings inside a group are checked as well."""


def any_value(value: Any) -> bool:
    """Accept any value, because the weights, their shapes or the specification express the setting."""
    return True


def training_only(value: Any) -> bool:
    """Accept any value, because the setting affects training only."""
    return True


def checked_jointly(value: Any) -> bool:
    """Accept any value, because `_inconsistencies` checks it together with other settings."""
    return True


def one_of(*values: Any) -> Decision:
    """Return a decision that accepts only the given values."""
    return lambda value: value in values


_LAYERS: Mapping[str, Decision] = {
    "kind": any_value,
    "layers": any_value,
    "heads": any_value,
    "attention": any_value,
    "feedforward": any_value,
    "activation": one_of("relu", "gelu", "gelu_tanh", "swish", "swiglu"),
    "experts": one_of(None),
    "norm": one_of("post", "pre"),
    "normalisation": any_value,
    "residual": one_of(True),
    "feedforward_bias": one_of(True),
    "float32_output": any_value,
}
_ADDED: Mapping[str, Decision] = {"kind": any_value, "join": one_of("add"), "width": any_value, "limit": any_value}
DECISIONS: Mapping[type[Config], Mapping[str, Decision]] = {
    ModelConfig: {
        "kind": any_value,
        "preset": any_value,
        "width": any_value,
        "encoder": any_value,
        "decoder": any_value,
        "positions": any_value,
        "target_positions": any_value,
        "dropout": training_only,
        "tie_embeddings": any_value,
        "tie_projection": any_value,
        "projection_bias": any_value,
        "scale_embeddings": any_value,
        "embedding_norm": one_of(None),
        "start_symbol": one_of("bos"),
        "excluded_tokens": any_value,
        "embeddings": training_only,
    },
    TransformerEncoderConfig: _LAYERS,
    TransformerDecoderConfig: {**_LAYERS, "cross_attention": any_value, "scale_output": one_of(False)},
    SoftAttentionConfig: {
        "kind": any_value,
        "scorer": any_value,
        "normaliser": one_of("softmax"),
        "projections": one_of(True),
        "combine": one_of(None, "project"),
        "key_width": checked_jointly,
        "query_width": checked_jointly,
        "value_width": checked_jointly,
        "kv_heads": one_of(None),
        "bias": one_of(True),
        "tie_keys_and_values": any_value,
        "diversity": training_only,
    },
    ScaledDotConfig: {"kind": any_value},
    DotConfig: {"kind": any_value},
    LayerNormConfig: {"kind": any_value, "gain": any_value, "offset": any_value, "epsilon": checked_jointly},
    RMSNormConfig: {"kind": any_value, "gain": any_value, "epsilon": checked_jointly},
    SinusoidalConfig: {**_ADDED, "base": any_value, "layout": any_value, "first": any_value},
    LearnedConfig: _ADDED,
    OneHotConfig: _ADDED,
    IndexConfig: _ADDED,
    RelativeConfig: {"kind": any_value, "distance": any_value, "keys": any_value, "values": any_value},
    RotaryConfig: {"kind": any_value, "base": any_value},
    NoPositionsConfig: {"kind": any_value},
}
"""The decisions for the settings of each config class of a model; classes and fields without one are rejected."""


def check_expressible(config: ModelConfig, vectors: bool = False) -> None:
    """Raise ModelError with the name and value of every setting that CTranslate2 cannot express.

    vectors: whether the source consists of vectors instead of text.
    """
    reasons = [*(["text.vectors: a source of vectors"] if vectors else []), *_rejected_settings(config, "model")]
    if reasons := [*reasons, *_inconsistencies(config)]:
        listed = "".join(f"\n  {reason}" for reason in reasons)
        raise ModelError(f"CTranslate2 cannot express this model:{listed}\nTranslate with --engine torch")


def epsilon(config: ModelConfig) -> float:
    """Return the ε of all norms, which are equal in a model that can be expressed."""
    return float(config.encoder.normalisation.epsilon)  # type: ignore[union-attr]


def _rejected_settings(config: Config, path: str) -> Iterator[str]:
    """Yield the settings in `config` whose decision rejects their value."""
    decisions = DECISIONS.get(type(config))
    if decisions is None:
        yield f"{path}.kind={getattr(config, 'kind', type(config).__name__)}"
        return
    for name in type(config).model_fields:
        value, setting = getattr(config, name), f"{path}.{name}"
        decision = decisions.get(name)
        if decision is None:
            yield f"{setting}={_format_value(value)}: the export has no decision for this setting"
        elif not decision(value):
            yield f"{setting}={_format_value(value)}"
        elif isinstance(value, Config) and decision is not training_only:
            yield from _rejected_settings(value, setting)


def _inconsistencies(config: ModelConfig) -> Iterator[str]:
    """Yield the settings that CTranslate2 can express individually, but not in combination."""
    epsilons: dict[float, str] = {}
    for path, side in (("model.encoder", config.encoder), ("model.decoder", config.decoder)):
        if not isinstance(side, TransformerEncoderConfig | TransformerDecoderConfig):
            continue
        epsilons.setdefault(side.normalisation.epsilon, f"{path}.normalisation.epsilon={side.normalisation.epsilon}")
        sizes = AttentionSizes(config.width, config.width, config.width, side.heads)
        for name in ("attention", "cross_attention"):
            attention = getattr(side, name, None)
            if not isinstance(attention, SoftAttentionConfig):
                continue
            widths = zip(("query_width", "key_width", "value_width"), attention.head_widths(sizes), strict=True)
            for setting, width in widths:
                if width * side.heads != config.width:
                    yield f"{path}.{name}.{setting}={width}: CTranslate2's heads are {config.width}/{side.heads} wide"
    if len(epsilons) > 1:
        yield f"{' and '.join(epsilons.values())}: CTranslate2 has a single epsilon for all norms of a model"


def _format_value(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, Config):
        return "{" + ", ".join(f"{name}: {_format_value(part)}" for name, part in value) + "}"
    return str(value)
