"""Checks whether CTranslate2 can compute a model. Every setting has a decision, so no new setting can be forgotten."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dragoman.base.errors import ModelError
from dragoman.base.settings.config import Config
from dragoman.models.seq2seq import ModelConfig
from dragoman.models.transformer import TransformerDecoderConfig, TransformerEncoderConfig
from dragoman.nn.attention.interface import AttentionSizes
from dragoman.nn.attention.soft import SoftAttentionConfig
from dragoman.nn.normalisation import LayerNormConfig, RMSNormConfig
from dragoman.nn.positions.learned import LearnedConfig
from dragoman.nn.positions.naive import IndexConfig, OneHotConfig
from dragoman.nn.positions.relative import RelativeConfig
from dragoman.nn.positions.rotary import RotaryConfig
from dragoman.nn.positions.sinusoidal import SinusoidalConfig
from dragoman.nn.positions.union import NoPositionsConfig
from dragoman.nn.scorers import DotConfig, ScaledDotConfig

Decision = Callable[[Any], bool]
"""Decides whether the value of a setting can be expressed. The settings of a group are decided in addition."""


def expressed(value: Any) -> bool:
    """Accept any value: the setting is expressed by the weights, their shapes, or the specification."""
    return True


def trains(value: Any) -> bool:
    """Accept any value: the setting affects training only."""
    return True


def compared(value: Any) -> bool:
    """Accept any value: `_disagreements` compares it with other settings."""
    return True


def only(*values: Any) -> Decision:
    """Only these values."""
    return lambda value: value in values


_LAYERS: Mapping[str, Decision] = {
    "kind": expressed,
    "layers": expressed,
    "heads": expressed,
    "attention": expressed,
    "feedforward": expressed,
    "activation": only("relu", "gelu", "swish", "swiglu"),
    "experts": only(None),
    "norm": only("post", "pre"),
    "normalisation": expressed,
    "residual": only(True),
}
_ADDED: Mapping[str, Decision] = {"kind": expressed, "join": only("add"), "width": expressed, "limit": expressed}
DECISIONS: Mapping[type[Config], Mapping[str, Decision]] = {
    ModelConfig: {
        "kind": expressed,
        "preset": expressed,
        "width": expressed,
        "encoder": expressed,
        "decoder": expressed,
        "positions": expressed,
        "target_positions": expressed,
        "dropout": trains,
        "tie_embeddings": expressed,
        "tie_projection": expressed,
        "projection_bias": expressed,
        "scale_embeddings": expressed,
        "embeddings": trains,
    },
    TransformerEncoderConfig: _LAYERS,
    TransformerDecoderConfig: {**_LAYERS, "cross_attention": expressed},
    SoftAttentionConfig: {
        "kind": expressed,
        "scorer": expressed,
        "normaliser": only("softmax"),
        "projections": only(True),
        "combine": only(None, "project"),
        "key_width": compared,
        "query_width": compared,
        "value_width": compared,
        "tie_keys_and_values": expressed,
        "diversity": trains,
    },
    ScaledDotConfig: {"kind": expressed},
    DotConfig: {"kind": expressed},
    LayerNormConfig: {"kind": expressed, "gain": expressed, "offset": expressed, "epsilon": compared},
    RMSNormConfig: {"kind": expressed, "gain": expressed, "epsilon": compared},
    SinusoidalConfig: {**_ADDED, "base": expressed, "layout": expressed},
    LearnedConfig: _ADDED,
    OneHotConfig: _ADDED,
    IndexConfig: _ADDED,
    RelativeConfig: {"kind": expressed, "distance": expressed, "keys": expressed, "values": expressed},
    RotaryConfig: {"kind": expressed, "base": expressed},
    NoPositionsConfig: {"kind": expressed},
}
"""The decisions for every config class of a model; classes and fields that are missing here are refused."""


def check_expressible(config: ModelConfig, vectors: bool = False) -> None:
    """Raise ModelError with the name and value of every setting that CTranslate2 cannot express.

    vectors: whether the source is vectors instead of text.
    """
    reasons = [*(["text.vectors: a source of vectors"] if vectors else []), *_refused(config, "model")]
    if reasons := [*reasons, *_disagreements(config)]:
        listed = "".join(f"\n  {reason}" for reason in reasons)
        raise ModelError(f"CTranslate2 cannot express this model:{listed}\nTranslate with --engine torch")


def epsilon(config: ModelConfig) -> float:
    """Return the ε of all norms, which is the same throughout a model that can be expressed."""
    return float(config.encoder.normalisation.epsilon)  # type: ignore[union-attr]


def _refused(config: Config, path: str) -> Iterator[str]:
    """Yield the settings in `config` that are refused by themselves."""
    decisions = DECISIONS.get(type(config))
    if decisions is None:
        yield f"{path}.kind={getattr(config, 'kind', type(config).__name__)}"
        return
    for name in type(config).model_fields:
        value, here = getattr(config, name), f"{path}.{name}"
        decision = decisions.get(name)
        if decision is None:
            yield f"{here}={_shown(value)}: the export has no decision for this setting"
        elif not decision(value):
            yield f"{here}={_shown(value)}"
        elif isinstance(value, Config) and decision is not trains:
            yield from _refused(value, here)


def _disagreements(config: ModelConfig) -> Iterator[str]:
    """Yield the settings that are refused in combination, although each by itself could be expressed."""
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
        yield f"{' and '.join(epsilons.values())}: CTranslate2 has one for all norms of a model"


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, Config):
        return "{" + ", ".join(f"{name}: {_shown(part)}" for name, part in value) + "}"
    return str(value)
