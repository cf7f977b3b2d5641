"""The number type of matrix products under autocast, for values that several products share."""

import torch
from torch import Tensor


def product_type(states: Tensor) -> torch.dtype:
    """Return the type of matrix products of `states`: autocast's type if it is enabled, else their own."""
    kind = states.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else states.dtype


def for_products(states: Tensor) -> Tensor:
    """Cast `states` to the type of matrix products.

    Autocast casts the input of every product separately; if several products share an input, this casts it once.
    """
    return states.to(product_type(states))


def at_least_single(values: Tensor) -> Tensor:
    """Cast to float32 unless the type is wider already, because sums over many tokens need the precision."""
    return values.to(torch.promote_types(values.dtype, torch.float32))
