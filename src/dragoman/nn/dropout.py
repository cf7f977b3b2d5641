"""Dropout with masks that are cheap on a CPU: they are drawn from random bytes instead of Bernoulli variables."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.settings.config import Config
from dragoman.nn.kernels.choice import uses_kernels
from dragoman.nn.randomness import generator

_LEVELS = 256
_factor: ContextVar[float | Tensor] = ContextVar("factor on dropout rates", default=1.0)


@contextmanager
def scale_dropout(factor: float | Tensor) -> Iterator[None]:
    """Multiply all dropout rates in this thread by `factor` (0…1), except in compiled layers, which use full rates.

    A tensor, a scalar on the device, is read when the operation runs, so that a recorded graph can be repeated with
    other rates. Only `Dropout.forward` and `nn.kernels` support it, not fused attention with dropout of its weights.
    """
    token = _factor.set(factor)
    try:
        yield
    finally:
        _factor.reset(token)


class DropoutConfig(Config):
    """Dropout rates. A single number in YAML sets `embedding` and `residual`."""

    embedding: float = Field(0.1, ge=0, lt=1, description="Rate on the sum of token and position vectors (0 to 1).")
    residual: float = Field(
        0.1, ge=0, lt=1, description="Rate on the output of every sublayer, and between recurrent layers (0 to 1)."
    )
    attention: float = Field(0.0, ge=0, lt=1, description="Rate on attention weights after the softmax (0 to 1).")
    feedforward: float = Field(0.0, ge=0, lt=1, description="Rate after the feed-forward activation (0 to 1).")


class Dropout(nn.Module):
    """Inverted dropout (Srivastava et al. 2014): set elements to zero with probability `rate` and scale up the others.

    On a CPU, torch draws the mask serially, one Bernoulli variable per element, which takes longer than the surrounding
    matrix products. This module compares random bytes with a threshold instead. The rate is therefore rounded to a
    multiple of 1/256, and the scale matches the rounded rate exactly. On other devices and in compiled layers, torch's
    dropout is used. Draws are reproducible with a seed (see `nn.randomness`).
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        if not 0 <= rate < 1:
            raise ValueError(f"a dropout rate must be in [0, 1), not {rate}")
        self.rate = rate

    @property
    def current_rate(self) -> float:
        """The rate that is in effect: 0 in evaluation mode, otherwise scaled by `scale_dropout`."""
        rate, factor = self.split_rate
        if factor is not None:
            raise RuntimeError("the dropout rate is on the device, but this operation needs a number")
        return rate

    @property
    def split_rate(self) -> tuple[float, Tensor | None]:
        """The rate that is in effect, and a factor on the device by which it is to be multiplied, or None."""
        if not self.training or self.rate == 0:
            return 0.0, None
        factor = _factor.get()
        # A changing rate would recompile a compiled layer.
        if isinstance(factor, Tensor) or torch.compiler.is_compiling():
            return self.rate, factor if isinstance(factor, Tensor) else None
        return self.rate * factor, None

    def forward(self, values: Tensor) -> Tensor:
        """Apply dropout to values of any shape. In evaluation mode, they are returned unchanged."""
        rate, factor = self.split_rate
        if rate == 0:
            return values
        if uses_kernels(values):
            from dragoman.nn.kernels.residual import dropped_out

            return dropped_out(values, rate, factor)
        if factor is not None:
            scaled = rate * factor
            return values * ((torch.rand_like(values, dtype=torch.float32) >= scaled) / (1 - scaled)).to(values.dtype)
        if values.device.type != "cpu" or torch.compiler.is_compiling():
            return functional.dropout(values, rate)
        threshold = max(1, round(rate * _LEVELS))
        # Multiplying by a float mask is four times as fast as selecting with a bool mask. Writing the comparison
        # directly to floats is ten times as fast as comparing and then converting (docs/EXPERIMENTS.md).
        mask = torch.ge(_random_bytes(values), threshold, out=torch.empty_like(values, requires_grad=False))
        return values * mask.mul_(_LEVELS / (_LEVELS - threshold))

    def extra_repr(self) -> str:
        """Return the rate, for printing the model."""
        return f"rate={self.rate}"


def _random_bytes(like: Tensor) -> Tensor:
    words = torch.empty((like.numel() + 7) // 8, dtype=torch.int64)
    # By default, `random_` draws 63-bit integers, so that every eighth byte would be below 128.
    words.random_(-(2**63), None, generator=generator(words.device))
    return words.view(torch.uint8)[: like.numel()].view(like.shape)
