"""From a validated configuration and two vocabulary sizes to a model."""

from torch import nn

from dragoman.models.seq2seq import PRESETS, ModelConfig, Seq2Seq
from dragoman.nn.mixture import Mixture

__all__ = [
    "PRESETS",
    "ModelConfig",
    "Seq2Seq",
    "build_model",
    "count_active_parameters",
    "count_parameters",
    "resolve_preset",
]


def resolve_preset(config: ModelConfig, pairs: int) -> ModelConfig:
    """As `ModelConfig.resolved`."""
    return config.resolved(pairs)


def build_model(config: ModelConfig, source_size: int, target_size: int, vectors: bool = False) -> Seq2Seq:
    """As `ModelConfig.build`."""
    return config.build(source_size, target_size, vectors)


def count_parameters(model: nn.Module) -> int:
    """The number of values in the parameters, frozen ones too; tied ones count once."""
    return sum(parameter.numel() for parameter in model.parameters())


def count_active_parameters(model: nn.Module) -> int:
    """As `count_parameters`, without those that a single token does not use: the experts that it is not given to."""
    return count_parameters(model) - sum(
        module.idle_parameters for module in model.modules() if isinstance(module, Mixture)
    )
