"""Costs of deep stacks of equal layers, extrapolated from shallow stacks.

A model of 96 layers of width 12,288 has 700 GB of parameters and cannot be run to measure its memory; without values,
each of its layers still takes as long as the first.
"""

from collections.abc import Callable

import numpy as np

from dragoman.models.settings import ModelSettings

_DEEP = 16
"""Smallest number of layers of a stack whose cost is extrapolated."""

_SHALLOW = 3
"""Number of layers from which it is extrapolated. The first and the last layer may cost more than those between."""


def deep_sides(config: ModelSettings) -> list[str]:
    """Return the fields of deep stacks of equal layers, such as `decoder`."""
    sides = {side: getattr(config, side) for side in getattr(config, "families", ())}
    return [side for side, family in sides.items() if family.has_equal_layers and family.layers >= _DEEP]


def extrapolate(config: ModelSettings, measure: Callable[[ModelSettings], np.ndarray]) -> np.ndarray:
    """Return the costs `measure(config)`, each of which is linear in the number of layers of each deep side.

    Only shallow models are measured.
    """
    sides = deep_sides(config)
    shallow = dict.fromkeys(sides, _SHALLOW)
    costs = total = measure(_with_layers(config, shallow))
    for side in sides:
        per_layer = measure(_with_layers(config, {**shallow, side: _SHALLOW + 1})) - costs
        total = total + (getattr(config, side).layers - _SHALLOW) * per_layer
    return total


def _with_layers(config: ModelSettings, layers: dict[str, int]) -> ModelSettings:
    sides = {side: getattr(config, side).model_copy(update={"layers": number}) for side, number in layers.items()}
    return config.model_copy(update=sides)
