"""Finds the modules that FSDP may shard separately, by observing a small forward pass of any model."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from dragoman.training.objectives.objective import END, Objective

_LEAST = 1 << 16
"""Minimum number of parameters of a part of a layer that is sharded separately."""


def shardable_modules(model: nn.Module, objective: Objective, trial: Any) -> list[nn.Module]:
    """Return layers, or else parts of layers, that run exactly once per pass and whose parameters nothing else reads.

    trial: a small batch of examples of different lengths. The pass is made as at the end of a run, where scheduled
    sampling, if enabled, feeds the decoder its own output.

    Both conditions are necessary. A module that is called once per token would gather its parameters once for each
    token of the longest sentence, a number that differs between ranks. A module whose parameters are read from outside
    (the memory is projected before a decoder layer runs) would not have gathered them. The parameters of all other
    modules belong to the model's root.
    """
    watch = _Watch(model)
    training = model.training
    random = torch.get_rng_state()
    with watch:
        objective(model.train(), trial, END)
    torch.set_rng_state(random)
    model.train(training)
    layers = [layer for group in model.modules() if isinstance(group, nn.ModuleList) for layer in group]
    chosen: list[nn.Module] = []
    for layer in layers:
        inside = any(layer in list(other.modules()) for other in chosen)
        if not inside:
            parts = [part for part in layer.children() if watch.fits(part) and _size(part) >= _LEAST]
            chosen += [layer] if watch.fits(layer) else parts
    return chosen


def _size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the calls of every module, and records each parameter that is read while no owner of it runs."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._model = model
        self._calls: dict[nn.Module, int] = {}
        self._running: list[nn.Module] = []
        self._owned = {module: {_place(each) for each in module.parameters()} for module in model.modules()}
        self._known = self._owned[model]
        self._outside: dict[nn.Module, set[int]] = {module: set() for module in self._owned}
        self._hooks: list[Any] = []

    def __enter__(self) -> "_Watch":
        for module in self._owned:
            self._hooks.append(module.register_forward_pre_hook(self._begin))
            self._hooks.append(module.register_forward_hook(self._end))
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *details: Any) -> None:
        super().__exit__(*details)  # type: ignore[no-untyped-call]
        for hook in self._hooks:
            hook.remove()

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), settings: Any = None) -> Any:
        read = {_place(leaf) for leaf in tree_leaves((arguments, settings)) if isinstance(leaf, Tensor)} & self._known
        if read:
            for module, owned in self._owned.items():
                if module not in self._running:
                    self._outside[module] |= read & owned
        return function(*arguments, **(settings or {}))

    def fits(self, module: nn.Module) -> bool:
        """Return whether `module` was called exactly once and its parameters were read only during that call."""
        return bool(self._owned[module]) and self._calls.get(module) == 1 and not self._outside[module]

    def _begin(self, module: nn.Module, _: Any) -> None:
        self._calls[module] = self._calls.get(module, 0) + 1
        self._running.append(module)

    def _end(self, module: nn.Module, *_: Any) -> None:
        self._running.pop()


def _place(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
