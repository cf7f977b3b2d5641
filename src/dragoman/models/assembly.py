"""Helpers for assembling models: compatible position schemes, initial values, building without storage."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from dragoman.base.errors import ConfigError
from dragoman.models.family import Family
from dragoman.nn.positions.scheme import PositionScheme


@contextmanager
def prefix_errors(side: str) -> Iterator[None]:
    """Prefix the messages of ConfigErrors with the side that they concern."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{side}: {error}") from None


def resolve_scheme(chosen: PositionScheme | None, family: Family, side: str) -> PositionScheme:
    """Return the chosen scheme, by default the family's. Raises ConfigError if the family cannot use it."""
    if chosen is None:
        return family.default_positions
    if chosen.inside_attention and not family.has_self_attention:
        raise ConfigError(
            f"positions of kind {chosen.kind} act inside self-attention, which a {family.kind} {side} does not have: "  # type: ignore[attr-defined]
            "choose another kind"
        )
    return chosen


def check_decodable(scheme: PositionScheme, setting: str) -> None:
    """Raises ConfigError for a scheme that needs the length of the text, which a decoder does not know in advance."""
    if scheme.needs_length:
        raise ConfigError(
            f"positions of kind {scheme.kind} need the length of the whole text, which a decoder does not know: "  # type: ignore[attr-defined]
            f"choose another kind for {setting}"
        )


def initialise_linear_layers(model: nn.Module) -> None:
    """Initialise weights with Glorot's uniform distribution and biases with zeros."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


@contextmanager
def without_storage() -> Iterator[None]:
    """Modules built in this context have shapes but no storage, which makes compatibility checks cheap."""
    with torch.device("meta"), SkipInitialValues():
        yield


class SkipInitialValues(TorchFunctionMode):
    """Skips random initial values; on the meta device, drawing them would import torch's compiler, which is slow."""

    def __torch_function__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), settings: dict[str, Any] | None = None
    ) -> Any:
        settings = settings or {}
        if getattr(function, "__name__", "") in ("normal_", "uniform_"):
            return arguments[0] if arguments else settings["tensor"]
        return function(*arguments, **settings)
