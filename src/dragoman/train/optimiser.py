"""Adam on all parameters, and its state as named tensors."""

from collections.abc import Mapping

import torch
from pydantic import Field
from torch import Tensor, nn

from dragoman.base.config import Config


class AdamConfig(Config):
    """Adam (Kingma & Ba 2015) with the Transformer paper's constants."""

    beta1: float = Field(0.9, ge=0, lt=1, description="decay of the gradient's mean (paper: 0.9)")
    beta2: float = Field(0.98, ge=0, lt=1, description="decay of the squared gradient's mean (paper: 0.98)")
    epsilon: float = Field(1e-9, gt=0, description="added to the denominator (paper: 1e-9)")
    weight_decay: float = Field(0.0, ge=0, description="decoupled weight decay, as a multiple of the learning rate")


def build_optimiser(config: AdamConfig, model: nn.Module) -> torch.optim.Optimizer:
    """Fused Adam (AdamW's decoupled decay where one is set) over what learns; tied parameters count once."""
    return torch.optim.AdamW(
        [parameter for parameter in model.parameters() if parameter.requires_grad],
        lr=0.0,
        betas=(config.beta1, config.beta2),
        eps=config.epsilon,
        weight_decay=config.weight_decay,
        fused=True,
    )


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
