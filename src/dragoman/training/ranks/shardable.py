"""Detection of the modules that FSDP may shard separately, by observing a small forward pass of the model."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from dragoman.training.objectives.objective import END, Objective

_MIN_PARAMETERS = 1 << 16
"""Minimum number of parameters for sharding a part of a layer separately."""


def shardable_modules(model: nn.Module, objective: Objective, trial: Any) -> list[nn.Module]:
    """Return the layers that run exactly once per pass and whose parameters no other code reads.

    If a layer does not qualify, those of its parts that qualify are returned.

    trial: a small batch of examples of different lengths. The pass is run with the settings of the end of a run, where
    scheduled sampling, if enabled, feeds the decoder its own output.

    Both conditions are necessary. A module that is called once per token would gather its parameters once for each
    token of the longest sentence, and this number differs between ranks. If the parameters of a module are read from
    outside (for example, the memory is projected before a decoder layer runs), they would not have been gathered. The
    parameters of all other modules belong to the model's root.
    """
    recorder = _CallRecorder(model)
    training = model.training
    random_state = torch.get_rng_state()
    with recorder:
        objective(model.train(), trial, END)
    torch.set_rng_state(random_state)
    model.train(training)
    layers = [layer for group in model.modules() if isinstance(group, nn.ModuleList) for layer in group]
    chosen: list[nn.Module] = []
    for layer in layers:
        inside = any(layer in list(other.modules()) for other in chosen)
        if not inside:
            parts = [
                part for part in layer.children() if recorder.is_shardable(part) and _size(part) >= _MIN_PARAMETERS
            ]
            chosen += [layer] if recorder.is_shardable(layer) else parts
    return chosen


def _size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


class _CallRecorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the calls of every module, and records each parameter that is read while no module that owns it runs."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._model = model
        self._calls: dict[nn.Module, int] = {}
        self._running: list[nn.Module] = []
        self._owned = {module: {_address(each) for each in module.parameters()} for module in model.modules()}
        self._known = self._owned[model]
        self._outside: dict[nn.Module, set[int]] = {module: set() for module in self._owned}
        self._hooks: list[Any] = []

    def __enter__(self) -> "_CallRecorder":
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
        read = {_address(leaf) for leaf in tree_leaves((arguments, settings)) if isinstance(leaf, Tensor)} & self._known
        if read:
            for module, owned in self._owned.items():
                if module not in self._running:
                    self._outside[module] |= read & owned
        return function(*arguments, **(settings or {}))

    def is_shardable(self, module: nn.Module) -> bool:
        """Return whether `module` was called exactly once and its parameters were read only during that call."""
        return bool(self._owned[module]) and self._calls.get(module) == 1 and not self._outside[module]

    def _begin(self, module: nn.Module, _: Any) -> None:
        self._calls[module] = self._calls.get(module, 0) + 1
        self._running.append(module)

    def _end(self, module: nn.Module, *_: Any) -> None:
        self._running.pop()


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
