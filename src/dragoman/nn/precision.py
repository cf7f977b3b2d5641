"""The number type of matrix products, which autocast sets, for code that several products share."""

import torch
from torch import Tensor


def product_type(states: Tensor) -> torch.dtype:
    """What matrix products of `states` run in: autocast's type where it is on, else their own."""
    kind = states.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else states.dtype


def for_products(states: Tensor) -> Tensor:
    """`states` in the type of matrix products.

    Autocast converts the input of every product anew; where several read the same states, this converts them once.
    """
    return states.to(product_type(states))


def at_least_single(values: Tensor) -> Tensor:
    """The same as float32, or as they are where that is wider: sums over many tokens need the digits."""
    return values.to(torch.promote_types(values.dtype, torch.float32))
