"""Helpers for building models: selection of position schemes, initialisation, building without storage."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from dragoman.base.errors import ConfigError
from dragoman.models.families.family import Family
from dragoman.nn.positions.scheme import PositionScheme


@contextmanager
def prefix_errors(side: str) -> Iterator[None]:
    """Prefix the messages of ConfigErrors raised within this context with the name of the side."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{side}: {error}") from None


def resolve_scheme(chosen: PositionScheme | None, family: Family, side: str) -> PositionScheme:
    """Return the chosen position scheme; None: the default of the family.

    Raises ConfigError if the family does not support the scheme.
    """
    if chosen is None:
        return family.default_positions
    if chosen.inside_attention and not family.has_self_attention:
        raise ConfigError(
            f"positions of kind {chosen.kind} act inside self-attention, which a {family.kind} {side} does not have: "  # type: ignore[attr-defined]
            "choose another kind"
        )
    return chosen


def check_decodable(scheme: PositionScheme, setting: str) -> None:
    """Raise ConfigError for a scheme that needs the length of the text, which is unknown during decoding."""
    if scheme.needs_length:
        raise ConfigError(
            f"positions of kind {scheme.kind} need the length of the whole text, which is unknown in a decoder: "  # type: ignore[attr-defined]
            f"choose another kind for {setting}"
        )


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
