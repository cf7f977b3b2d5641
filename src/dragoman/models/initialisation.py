"""Initialisation of models: random initial values of linear layers, or modules without storage."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode


def initialise_linear_layers(model: nn.Module) -> None:
    """Initialise the weights of all linear layers with Glorot's uniform distribution, and their biases with zeros."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


@contextmanager
def without_storage() -> Iterator[None]:
    """Build modules without storage within this context, which makes compatibility checks cheap."""
    with torch.device("meta"), SkipInitialValues():
        yield


class SkipInitialValues(TorchFunctionMode):
    """A mode that skips random initialisation.

    On the meta device, drawing random values would import torch's compiler, which is slow.
    """

    def __torch_function__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), settings: dict[str, Any] | None = None
    ) -> Any:
        settings = settings or {}
        if getattr(function, "__name__", "") in ("normal_", "uniform_"):
            return arguments[0] if arguments else settings["tensor"]
        return function(*arguments, **settings)
