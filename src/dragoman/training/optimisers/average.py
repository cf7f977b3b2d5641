"""An exponential moving average of the parameters."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from dragoman.checkpoint.tensors import fill
from dragoman.training.machine.threads import one_core_for


class ParameterAverage:
    """An exponential moving average of the parameters.

    After update t: shadow ← δ · shadow + (1 − δ) · parameter, with δ = min(decay, (1 + t)/(10 + t)). With this decay,
    the average forgets the initial parameters, and at first spans about a tenth of the updates so far. The formula is
    that of TensorFlow's ExponentialMovingAverage with `num_updates`.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self._parameters = dict(model.named_parameters())
        self.shadow: dict[str, Tensor] = {name: value.detach().clone() for name, value in self._parameters.items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Add the parameters after update `step`, counted from 1."""
        decay = min(self.decay, (1 + step) / (10 + step))
        averages = list(self.shadow.values())
        parameters: list[Tensor] = [self._parameters[name] for name in self.shadow]
        with one_core_for(sum(each.numel() for each in averages)):
            torch._foreach_lerp_(averages, parameters, 1 - decay)

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore a saved `shadow`."""
        for name, value in self.shadow.items():
            value.copy_(tensors[name])

    @contextmanager
    def swapped_in(self) -> Iterator[None]:
        """Use the averages as the model's parameters within this context."""
        original = {name: value.detach().clone() for name, value in self._parameters.items()}
        fill(self._parameters, self.shadow)
        try:
            yield
        finally:
            fill(self._parameters, original)
