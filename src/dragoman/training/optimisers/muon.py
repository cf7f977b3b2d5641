"""Muon: orthogonalised updates for the weights of linear layers, Adam for all other parameters."""

from collections.abc import Callable, Sequence
from ctypes import byref
from itertools import groupby
from math import sqrt
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from dragoman.native.training import MuonStep, has_pairs, library
from dragoman.nn.kernels.choice import kernels_run
from dragoman.training.machine.threads import Threads
from dragoman.training.optimisers.adam import AdamConstants, trainable_parameters
from dragoman.training.ranks.parallel import gather_full, local_shard

# Coefficients a, b, c of three polynomials p(σ) = aσ + bσ³ + cσ⁵, which are applied one after another. Their
# composition maps [0.01, 1] as close to 1 as possible (Amsel et al. 2025, "The Polar Express"). Each polynomial is
# optimal on the range of the previous one (Remez algorithm).
_QUINTICS = ((8.0934, -23.6204, 17.4462), (3.6366, -2.7219, 0.5365), (2.6613, -1.9772, 0.4526))
_MARGIN = 1.01  # bfloat16 may round up, and the first polynomial grows fast above 1
_ADAM_RMS = 0.2


class MuonConfig(AdamConstants):
    """Muon (Jordan et al. 2024), with updates scaled to the size of Adam's, so that Adam's learning rates apply.

    M ← μM + (1 − μ)G; W ← W − lr · 0.2 · √max(rows, columns) · orthogonal((1 − μ)G + μM), where orthogonal(UΣVᵀ) ≈ UVᵀ
    (Liu et al. 2025, "Muon is scalable for LLM training", equations 1 to 4). It trains the weights of linear layers;
    Adam trains token tables, the projection to the vocabulary, norms, biases, convolutions and recurrent cells. YAML:
    `train: {optimiser: {kind: muon}}`.
    """

    kind: Literal["muon"] = "muon"
    momentum: float = Field(
        0.95, ge=0, lt=1, description="μ, decay rate of the running mean of the gradient, for matrices (paper: 0.95)."
    )

    def build(self, model: nn.Module, precision: torch.dtype, threads: Threads | None = None) -> torch.optim.Optimizer:
        """Build an optimiser for all trainable parameters; tied parameters are included once.

        precision: dtype of the matrix products that orthogonalise updates. threads: the pool whose threads share the
        matrices, or None: all cores work on one operation at a time.
        """
        linear = {module.weight for module in model.modules() if isinstance(module, nn.Linear)}
        parameters = trainable_parameters(model)
        matrices = [parameter for parameter in parameters if parameter in linear]
        return Muon(self, matrices, [each for each in parameters if each not in linear], precision, threads)


class Muon(torch.optim.AdamW):
    """Muon for `matrices` and Adam for `others`, with one learning rate in `param_groups`.

    precision: dtype of the matrix products that orthogonalise an update. The optimiser state of a matrix has one entry,
    "momentum".
    """

    def __init__(
        self,
        config: MuonConfig,
        matrices: Sequence[nn.Parameter],
        others: Sequence[nn.Parameter],
        precision: torch.dtype,
        threads: Threads | None = None,
    ) -> None:
        super().__init__(others, **config.settings)
        self.momentum, self.decay, self.precision = config.momentum, config.weight_decay, precision
        self.matrices = sorted(matrices, key=_shape)  # equal shapes are orthogonalised as one batch
        self.threads = threads
        on_cpu = any(each.device.type == "cpu" for each in matrices)
        self._in_c = on_cpu and kernels_run(torch.device("cpu")) and (precision == torch.float32 or has_pairs())
        self.factors: dict[nn.Parameter, float] = {}
        """Factors of the learning rate of matrices (`layers.set_rate_factors`), 1 by default."""

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, never to zeros."""
        super().zero_grad(set_to_none=True)
        for matrix in self.matrices:
            matrix.grad = None

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient. Under FSDP, every rank computes every matrix's full update."""
        result = super().step(closure)
        matrices = [matrix for matrix in self.matrices if matrix.grad is not None]
        if self.threads is None:
            self._update(matrices)
        else:
            count = self.threads.count
            self.threads.map(self._update, [matrices[first::count] for first in range(count)])
        return result

    @torch.no_grad()
    def _update(self, matrices: Sequence[nn.Parameter]) -> None:
        """Update matrices that are sorted by shape."""
        first = self.param_groups[0]
        base = float(first["lr"]) / float(first.get("factor", 1.0))
        if self._in_c:
            matrices = [each for each in matrices if not self._update_in_c(each, base * self.factors.get(each, 1.0))]
        for shape, group in groupby(matrices, _shape):
            same_shape = list(group)
            updates = orthogonal(
                torch.stack([gather_full(self._direction(matrix)) for matrix in same_shape]), self.precision
            )
            for matrix, update in zip(same_shape, updates, strict=True):
                rate = base * self.factors.get(matrix, 1.0)
                if self.decay:
                    matrix.mul_(1 - rate * self.decay)
                matrix.sub_(local_shard(update.to(matrix.dtype), matrix), alpha=rate * _ADAM_RMS * sqrt(max(shape)))

    def _update_in_c(self, matrix: nn.Parameter, rate: float) -> bool:
        """Update a matrix and its mean of gradients in one call of C, if possible. Raises MemoryError.

        Products in bfloat16 need pairs of elements.
        """
        assert matrix.grad is not None
        mean = self._mean(matrix, matrix.grad)
        tensors = matrix, matrix.grad, mean
        wide = self.precision == torch.float32
        if not (wide or all(size % 2 == 0 for size in matrix.shape)) or not all(map(_is_plain, tensors)):
            return False
        step = MuonStep(self.momentum, 1 - rate * self.decay, rate * _ADAM_RMS * sqrt(max(matrix.shape)), _MARGIN)
        step.steps[:] = [each for quintic in _QUINTICS for each in quintic]
        tall = matrix.size(0) > matrix.size(1)
        addresses = (each.data_ptr() for each in tensors)
        if library().dragoman_training_muon(*addresses, *sorted(matrix.shape), tall, byref(step), wide):
            raise MemoryError("not enough memory for the optimiser")
        return True

    def _direction(self, matrix: nn.Parameter) -> Tensor:
        """Update M and return the Nesterov momentum (1 − μ)G + μM."""
        gradient = matrix.grad
        assert gradient is not None
        mean = self._mean(matrix, gradient)
        mean.lerp_(gradient, 1 - self.momentum)
        return gradient.lerp(mean, self.momentum)

    def _mean(self, matrix: nn.Parameter, gradient: Tensor) -> Tensor:
        """Return M, the running mean of the gradient."""
        state = self.state[matrix]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(gradient)
        return state["momentum"]  # type: ignore[no-any-return]


def orthogonal(matrices: Tensor, precision: torch.dtype = torch.float32) -> Tensor:
    """Orthogonalise matrices (N, rows, columns): keep their singular vectors, and map singular values to 0.73 … 1.28.

    The algorithm starts from X = M/‖MMᵀ‖^½, where the divisor is at least the largest singular value, and makes three
    steps X ← aX + (bA + cA²)X with A = XXᵀ (Newton–Schulz iteration; Bernstein & Newhouse 2024). Singular values below
    a hundredth of the divisor stay small, and a zero matrix stays zero.
    """
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices / _norms(matrices)
    x = (x.mT if tall else x).to(precision)
    for step, (linear, cubic, quintic) in enumerate(_QUINTICS):
        a = x @ x.mT
        if step == 0:
            bound = _norms(a.to(matrices.dtype)) * _MARGIN
            a, x = (a / bound).to(precision), (x / bound.sqrt()).to(precision)
        x = torch.baddbmm(x, torch.baddbmm(a, a, a, beta=cubic, alpha=quintic), x, beta=linear)
    return x.mT if tall else x


def _is_plain(tensor: Tensor) -> bool:
    """Return whether a tensor is a contiguous float32 tensor of the CPU, and not a shard."""
    return (
        type(tensor) in (Tensor, nn.Parameter)
        and tensor.device.type == "cpu"
        and tensor.dtype == torch.float32
        and tensor.is_contiguous()
    )


def _norms(matrices: Tensor) -> Tensor:
    """Return the Frobenius norms (N, 1, 1), never zero."""
    norms: Tensor = torch.linalg.matrix_norm(matrices, keepdim=True)
    return norms.clamp(min=torch.finfo(torch.float32).tiny)


def _shape(matrix: Tensor) -> tuple[int, ...]:
    return tuple(matrix.shape)
