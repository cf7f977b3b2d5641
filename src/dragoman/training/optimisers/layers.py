"""Learning rates by layer, frozen parts, and gradual unfreezing, for runs that start from a trained model."""

import re
from collections.abc import Mapping, Sequence

import torch
from torch import nn

from dragoman.base.errors import ConfigError
from dragoman.models.parts import parts_of

_LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")
_HEAD = "head."


def parameter_depths(model: nn.Module) -> dict[str, int]:
    """Return the depth of each parameter by name.

    Embeddings have depth 0, and the layers of an encoder or decoder have the depths 1, 2, … from the bottom. Parameters
    after the layers, and those of families without separate layers, have the depth of the top layer. The head is one
    deeper.
    """
    names = [name for name, _ in model.named_parameters()]
    layers = {name: int(match[1]) + 1 for name in names if (match := _LAYER.search(name))}
    top = max(layers.values(), default=1)
    return {
        name: top + 1
        if name.startswith(_HEAD)
        else layers.get(name, 0 if ".embedding." in f".{name}" or name.startswith("embedding") else top)
        for name in names
    }


def rate_factors(model: nn.Module, layer_decay: float, head_rate: float) -> dict[nn.Parameter, float]:
    """Return the factor of the learning rate of each parameter.

    layer_decay: factor from each layer to the one below; the top layer has the full rate (Howard & Ruder 2018, section
    3.2; Clark et al. 2020, appendix B). head_rate: factor of the head.
    """
    depths = parameter_depths(model)
    head = max(depths.values(), default=0) if any(name.startswith(_HEAD) for name in depths) else None
    top = max((depth for depth in depths.values() if depth != head), default=0)
    parameters = dict(model.named_parameters())
    return {
        parameters[name]: head_rate if depth == head else layer_decay ** (top - depth) for name, depth in depths.items()
    }


def set_rate_factors(optimiser: torch.optim.Optimizer, factors: Mapping[nn.Parameter, float]) -> None:
    """Divide the parameters of an optimiser into groups with equal factors, stored in the groups as `factor`.

    An optimiser whose factors are all 1 is not changed.
    """
    if all(factor == 1 for factor in factors.values()):
        return
    groups = []
    for group in optimiser.param_groups:
        members: dict[float, list[nn.Parameter]] = {}
        for parameter in group["params"]:
            members.setdefault(factors.get(parameter, 1.0), []).append(parameter)
        options = {name: value for name, value in group.items() if name != "params"}
        groups += [{**options, "params": parameters, "factor": factor} for factor, parameters in members.items()]
    optimiser.param_groups[:] = groups
    if isinstance(factored := getattr(optimiser, "factors", None), dict):
        factored.update(factors)


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of each group to `rate` times its factor."""
    for group in optimiser.param_groups:
        group["lr"] = rate * group.get("factor", 1.0)


def freeze_parts(model: nn.Module, names: Sequence[str]) -> None:
    """Exclude parts from training, with all parts inside them: `encoder` includes `encoder.embedding`.

    Raises ConfigError for an unknown part, and if no parameter remains to be trained.
    """
    parts = parts_of(model)
    for name in names:
        chosen = [part for path, part in parts.items() if path == name or path.startswith(f"{name}.")]
        if not chosen:
            raise ConfigError(f"train.freeze: this run's model has no part {name}. Its parts are {', '.join(parts)}")
        for part in chosen:
            for tensor in part.tensors.values():
                if isinstance(tensor, nn.Parameter):
                    tensor.requires_grad_(False)
    if names and not any(parameter.requires_grad for parameter in model.parameters()):
        raise ConfigError("train.freeze leaves no parameter to train: remove a part from it")


class GradualUnfreezing:
    """Trains the head first, then one more layer from the top every few epochs (Howard & Ruder 2018, section 3.3).

    A model without a head starts with its top layer. Parameters that are frozen when this object is created, by
    `freeze_parts`, stay frozen.
    """

    def __init__(self, model: nn.Module, epochs: int) -> None:
        """epochs: number of epochs after which the next layer is trained."""
        depths = parameter_depths(model)
        self._epochs, self._top = epochs, max(depths.values(), default=0)
        self._depths = {
            parameter: depths[name] for name, parameter in model.named_parameters() if parameter.requires_grad
        }

    @property
    def depth(self) -> int:
        """Number of layers above the lowest."""
        return self._top

    def apply(self, epoch: int) -> int:
        """Freeze and unfreeze parameters for an epoch, counted from 0. Returns the depth of the lowest trained layer.

        The result depends only on the epoch, so a resumed run trains the same parameters.
        """
        lowest = max(0, self._top - epoch // self._epochs)
        for parameter, depth in self._depths.items():
            parameter.requires_grad_(depth >= lowest)
        return lowest
