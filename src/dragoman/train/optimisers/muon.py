"""Muon: the weights of linear layers move by an orthogonal matrix in each update, all other parameters as Adam says."""

from collections.abc import Callable, Sequence
from itertools import groupby
from math import sqrt
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from dragoman.train.optimisers.adam import AdamConstants, learning
from dragoman.train.ranks.sharded import full, share

# The quintic p(σ) = aσ + bσ³ + cσ⁵ of Jordan's: five times over it brings singular values of 0.003 to 1 to 0.7 to 1.2.
_QUINTIC = (3.4445, -4.7750, 2.0315)
_RMS_OF_ADAM = 0.2


class MuonConfig(AdamConstants):
    """Muon (Jordan et al. 2024), with updates as large as Adam's, so that Adam's learning rates fit.

    M ← μM + (1 − μ)G; W ← W − lr · 0.2 · √max(rows, columns) · orthogonal((1 − μ)G + μM), where orthogonal(UΣVᵀ) ≈ UVᵀ
    (Liu et al. 2025, "Muon is scalable for LLM training", equations 1 to 4). For the weights of linear layers; token
    tables, the projection to the vocabulary, norms, biases, convolutions and recurrent cells are Adam's.
    YAML: `train: {optimiser: {kind: muon}}`.
    """

    kind: Literal["muon"] = "muon"
    momentum: float = Field(0.95, ge=0, lt=1, description="μ, decay of the gradient's mean for matrices (paper: 0.95)")

    def build(self, model: nn.Module, precision: torch.dtype) -> torch.optim.Optimizer:
        """Over what learns; tied parameters count once. precision: of the products that make updates orthogonal."""
        linear = {module.weight for module in model.modules() if isinstance(module, nn.Linear)}
        parameters = learning(model)
        matrices = [parameter for parameter in parameters if parameter in linear]
        return Muon(self, matrices, [each for each in parameters if each not in linear], precision)


class Muon(torch.optim.AdamW):
    """Muon for `matrices`, Adam for `others`. Both have one learning rate, which the param_groups hold.

    precision: of the products that make an update orthogonal. The momentum of a matrix is its state "momentum".
    """

    def __init__(
        self,
        config: MuonConfig,
        matrices: Sequence[nn.Parameter],
        others: Sequence[nn.Parameter],
        precision: torch.dtype,
    ) -> None:
        super().__init__(others, **config.settings)
        self.momentum, self.decay, self.precision = config.momentum, config.weight_decay, precision
        self.matrices = sorted(matrices, key=_shape)  # of one shape they are made orthogonal together

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Of all parameters. Gradients are always dropped, never filled with zeros."""
        super().zero_grad(set_to_none=True)
        for matrix in self.matrices:
            matrix.grad = None

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of all parameters that have a gradient. Under FSDP every rank makes each whole update."""
        result = super().step(closure)
        rate = float(self.param_groups[0]["lr"])
        trained = [matrix for matrix in self.matrices if matrix.grad is not None]
        for shape, alike in groupby(trained, _shape):
            matrices = list(alike)
            updates = orthogonal(torch.stack([full(self._moved(matrix)) for matrix in matrices]), self.precision)
            scale = rate * _RMS_OF_ADAM * sqrt(max(shape))
            for matrix, update in zip(matrices, updates, strict=True):
                matrix.mul_(1 - rate * self.decay)
                matrix.sub_(share(update.to(matrix.dtype), matrix), alpha=scale)
        return result

    def _moved(self, matrix: nn.Parameter) -> Tensor:
        """The momentum after this gradient, looked ahead by one (Nesterov)."""
        gradient, state = matrix.grad, self.state[matrix]
        assert gradient is not None
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(gradient)
        state["momentum"].lerp_(gradient, 1 - self.momentum)
        return gradient.lerp(state["momentum"], self.momentum)


def orthogonal(matrices: Tensor, precision: torch.dtype = torch.float32) -> Tensor:
    """(N, rows, columns) → the same, with singular vectors kept and nearly all singular values within 0.7 to 1.2.

    Five Newton-Schulz steps X ← aX + (bA + cA²)X, A = XXᵀ, from X = M/‖M‖ (Bernstein & Newhouse 2024; Jordan's
    constants). A matrix of zeros stays one.
    """
    linear, cubic, quintic = _QUINTIC
    tall = matrices.shape[1] > matrices.shape[2]
    lengths: Tensor = torch.linalg.matrix_norm(matrices, keepdim=True).clamp(min=torch.finfo(torch.float32).tiny)
    x = (matrices / lengths).to(precision)
    x = x.mT if tall else x
    for _ in range(5):
        a = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(a, a, a, beta=cubic, alpha=quintic), x, beta=linear)
    return x.mT if tall else x


def _shape(matrix: Tensor) -> tuple[int, ...]:
    return tuple(matrix.shape)
