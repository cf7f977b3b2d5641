"""Adam, for all parameters."""

from typing import Any, Literal

import torch
from pydantic import Field
from torch import nn

from dragoman.base.settings.config import Config
from dragoman.training.machine.threads import Threads


class AdamConstants(Config):
    """Constants of Adam. Every optimiser in this package uses Adam for at least some of the parameters."""

    beta1: float = Field(0.9, ge=0, lt=1, description="Decay rate of the running mean of the gradient (paper: 0.9).")
    beta2: float = Field(
        0.98, ge=0, lt=1, description="Decay rate of the running mean of the squared gradient (paper: 0.98)."
    )
    epsilon: float = Field(1e-9, gt=0, description="Constant added to the denominator (paper: 1e-9).")
    weight_decay: float = Field(0.0, ge=0, description="Decoupled weight decay, as a multiple of the learning rate.")

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of torch's AdamW (Loshchilov & Hutter 2019). The engine sets the learning rate."""
        betas = self.beta1, self.beta2
        return {"lr": 0.0, "betas": betas, "eps": self.epsilon, "weight_decay": self.weight_decay, "fused": True}


class AdamConfig(AdamConstants):
    """Adam (Kingma & Ba 2015) with the Transformer paper's constants. YAML: `train: {optimiser: {kind: adam}}`."""

    kind: Literal["adam"] = "adam"

    def build(self, model: nn.Module, precision: torch.dtype, threads: Threads | None = None) -> torch.optim.Optimizer:
        """Build an optimiser for all trainable parameters; tied parameters are included once.

        precision, threads: ignored; needed only by optimisers that compute matrix products.
        """
        return torch.optim.AdamW(trainable_parameters(model), **self.settings)


def trainable_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Return the trainable parameters of `model`; tied parameters are included once."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]
