"""`ParameterCopies`: copies of a model's parameters in half precision, for passes in half precision throughout."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.nn.auxiliary import collecting
from dragoman.nn.kernels import cpu
from dragoman.nn.kernels.choice import kernels_run
from dragoman.training.objectives.objective import StaticObjective
from dragoman.training.ranks.ranks import Runtime

_MIXED_PRECISIONS = "same dtype", "expected scalar type"
"""Parts of PyTorch's messages for operations on tensors of different precisions."""


class NotStatic(Exception):
    """The pass does more than computing a loss and its gradients. The message completes "because …"."""


class ParameterCopies:
    """Copies of the parameters of a model in another precision."""

    def __init__(self, model: nn.Module, precision: torch.dtype, in_c: bool = False) -> None:
        """in_c: copies are rounded by the kernels of a CPU, from float32 to bfloat16."""
        self._model, self._precision, self._in_c = model, precision, in_c
        self._copies: dict[nn.Parameter, Tensor] = {}

    def refreshed(self, parameters: Sequence[nn.Parameter]) -> list[Tensor]:
        """Update all copies, and return those of some parameters. They are the same tensors each time.

        Copies require gradients if the parameters do.
        """
        if any(copy.requires_grad != each.requires_grad for each, copy in self._copies.items()):
            self._copies = {}
        if not self._copies:
            self._copies = {
                each: torch.empty_like(each, dtype=self._precision, requires_grad=each.requires_grad)
                for each in self._model.parameters()
            }
        if self._in_c and all(each.is_contiguous() for each in self._copies):
            cpu.narrow(list(self._copies), list(self._copies.values()))
        else:
            with torch.no_grad():
                torch._foreach_copy_(list(self._copies.values()), list(self._copies))
        return [self._copies[each] for each in parameters]

    @contextmanager
    def replaced(self) -> Iterator[None]:
        """Use the copies as the parameters of the model within this context.

        `torch.func.functional_call` does not restore the parameters of a module that is part of a model twice, such as
        the embedding of both sides (torch 2.13).
        """
        places = [
            (module._parameters, name, each)
            for module in self._model.modules()
            for name, each in module._parameters.items()
            if each is not None
        ]
        try:
            for parameters, name, each in places:
                parameters[name] = self._copies[each]  # type: ignore[assignment]
            yield
        finally:
            for parameters, name, each in places:
                parameters[name] = each


def static_sums(model: nn.Module, objective: Any, batch: Any, step: int) -> tuple[Tensor, Tensor]:
    """Return the summed loss and the summed cross-entropy of a batch. objective: a `StaticObjective`.

    Raises NotStatic if the model has auxiliary losses or counters, or if it needs autocast.
    """
    try:
        with collecting(step) as auxiliary:
            total, cross_entropy = objective.static_sums(model, batch)
    except RuntimeError as error:
        if any(words in str(error) for words in _MIXED_PRECISIONS):  # such as the tables of a user's own layer
            raise NotStatic("an operation of the model mixes precisions") from None
        raise
    if auxiliary.penalties or auxiliary.decisions or auxiliary.counts:
        raise NotStatic("the model has auxiliary losses or counters")
    return total, cross_entropy


def is_static(model: nn.Module, objective: Any, runtime: Runtime) -> bool:
    """Return whether `static_sums` may compute the passes of a run, by what is known before the first one.

    They cannot be computed by several processes, or if the model has running statistics.
    """
    has_statistics = any(not isinstance(each, nn.Parameter) for each in model.state_dict(keep_vars=True).values())
    return (
        not (runtime.ranks.distributed or has_statistics)
        and isinstance(objective, StaticObjective)
        and objective.is_static
    )


def copies_on_cpu(model: nn.Module, objective: Any, runtime: Runtime) -> ParameterCopies | None:
    """Return the copies for passes of packed batches in bfloat16 on a CPU, or None if autocast chooses the precisions.

    Without kernels, half precision throughout would not be faster.
    """
    if runtime.device.type != "cpu" or runtime.precision != torch.bfloat16 or not is_static(model, objective, runtime):
        return None
    return ParameterCopies(model, runtime.precision, in_c=True) if kernels_run(runtime.device) else None
