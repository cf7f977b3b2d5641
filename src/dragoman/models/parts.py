"""Parameters of a model: how many there are."""

from torch import nn

from dragoman.nn.mixture import Mixture


def count_parameters(model: nn.Module) -> int:
    """The number of values in the parameters, frozen ones too; tied ones count once."""
    return sum(parameter.numel() for parameter in model.parameters())


def count_active_parameters(model: nn.Module) -> int:
    """As `count_parameters`, without those that a single token does not use: the experts that it is not given to."""
    return count_parameters(model) - sum(
        module.idle_parameters for module in model.modules() if isinstance(module, Mixture)
    )
