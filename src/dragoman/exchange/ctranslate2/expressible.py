"""Which of our models CTranslate2 can compute: a decision for every setting, so that no new one slips through."""

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
"""Whether a setting's value can be expressed; of a group, whether it may be there at all, before it is gone into."""


def carried(value: Any) -> bool:
    """Any value: it is in the weights, in their shapes, or in what the specification is told."""
    return True


def trains(value: Any) -> bool:
    """Any value: it acts in training alone."""
    return True


def compared(value: Any) -> bool:
    """Any value by itself: `_disagreements` looks at several together."""
    return True


def only(*values: Any) -> Decision:
    """These values and no others."""
    return lambda value: value in values


_LAYERS: Mapping[str, Decision] = {
    "kind": carried,
    "layers": carried,
    "heads": carried,
    "attention": carried,
    "feedforward": carried,
    "activation": only("relu", "gelu", "swish", "swiglu"),
    "experts": only(None),
    "norm": only("post", "pre"),
    "normalisation": carried,
    "residual": only(True),
}
_ADDED: Mapping[str, Decision] = {"kind": carried, "join": only("add"), "width": carried, "limit": carried}
DECISIONS: Mapping[type[Config], Mapping[str, Decision]] = {
    ModelConfig: {
        "kind": carried,
        "preset": carried,
        "width": carried,
        "encoder": carried,
        "decoder": carried,
        "positions": carried,
        "target_positions": carried,
        "dropout": trains,
        "tie_embeddings": carried,
        "tie_projection": carried,
        "projection_bias": carried,
        "scale_embeddings": carried,
        "embeddings": trains,
    },
    TransformerEncoderConfig: _LAYERS,
    TransformerDecoderConfig: {**_LAYERS, "cross_attention": carried},
    SoftAttentionConfig: {
        "kind": carried,
        "scorer": carried,
        "normaliser": only("softmax"),
        "projections": only(True),
        "combine": only(None, "project"),
        "key_width": compared,
        "query_width": compared,
        "value_width": compared,
        "tie_keys_and_values": carried,
        "diversity": trains,
    },
    ScaledDotConfig: {"kind": carried},
    DotConfig: {"kind": carried},
    LayerNormConfig: {"kind": carried, "gain": carried, "offset": carried, "epsilon": compared},
    RMSNormConfig: {"kind": carried, "gain": carried, "epsilon": compared},
    SinusoidalConfig: {**_ADDED, "base": carried, "layout": carried},
    LearnedConfig: _ADDED,
    OneHotConfig: _ADDED,
    IndexConfig: _ADDED,
    RelativeConfig: {"kind": carried, "distance": carried, "keys": carried, "values": carried},
    RotaryConfig: {"kind": carried, "base": carried},
    NoPositionsConfig: {"kind": carried},
}
"""Of every config class that a model may hold: one that is not here is refused, and so is a field that is not."""


def check_expressible(config: ModelConfig, vectors: bool = False) -> None:
    """Raises ModelError that names every setting, with its value, that CTranslate2 has nothing for.

    vectors: whether the source is vectors instead of text.
    """
    reasons = [*(["text.vectors: a source of vectors"] if vectors else []), *_refused(config, "model")]
    if reasons := [*reasons, *_disagreements(config)]:
        listed = "".join(f"\n  {reason}" for reason in reasons)
        raise ModelError(f"CTranslate2 cannot express this model:{listed}\nTranslate with --engine torch")


def epsilon(config: ModelConfig) -> float:
    """The one ε of all norms of a model that can be expressed."""
    return float(config.encoder.normalisation.epsilon)  # type: ignore[union-attr]


def _refused(config: Config, path: str) -> Iterator[str]:
    """Settings below `config` that are refused by themselves."""
    decisions = DECISIONS.get(type(config))
    if decisions is None:
        yield f"{path}.kind={getattr(config, 'kind', type(config).__name__)}"
        return
    for name in type(config).model_fields:
        value, here = getattr(config, name), f"{path}.{name}"
        decision = decisions.get(name)
        if decision is None:
            yield f"{here}={_shown(value)}: the export does not know this setting"
        elif not decision(value):
            yield f"{here}={_shown(value)}"
        elif isinstance(value, Config) and decision is not trains:
            yield from _refused(value, here)


def _disagreements(config: ModelConfig) -> Iterator[str]:
    """Settings that are refused because of others; each by itself could be expressed."""
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
                    yield f"{path}.{name}.{setting}={width}: its heads are {config.width}/{side.heads} wide"
    if len(epsilons) > 1:
        yield f"{' and '.join(epsilons.values())}: it has one for all norms of a model"


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, Config):
        return "{" + ", ".join(f"{name}: {_shown(part)}" for name, part in value) + "}"
    return str(value)
