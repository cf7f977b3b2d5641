"""An optimiser's state as named tensors."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn


def optimiser_tensors(optimiser: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """The optimiser's state as `parameter name/state name` → tensor."""
    return {
        f"{name}/{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimiser.state[parameter].items()
    }


def restore_optimiser(optimiser: torch.optim.Optimizer, model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Put back what `optimiser_tensors` gave."""
    for name, parameter in model.named_parameters():
        state = {key.rpartition("/")[2]: value for key, value in tensors.items() if key.rpartition("/")[0] == name}
        optimiser.state[parameter] = {key: value.clone() for key, value in state.items()}
