"""Casts to the dtype of matrix products under autocast, and to float32 for long sums."""

import torch
from torch import Tensor


def matmul_dtype(states: Tensor) -> torch.dtype:
    """Return the dtype of matrix products of `states`: the autocast dtype if autocast is enabled, else their dtype."""
    device_type = states.device.type
    if states.is_meta:  # autocast does not know this device
        return states.dtype
    return torch.get_autocast_dtype(device_type) if torch.is_autocast_enabled(device_type) else states.dtype


def cast_for_matmul(states: Tensor) -> Tensor:
    """Cast `states` to the dtype of matrix products.

    Autocast casts the input of each product separately. This function casts an input that several products share once.
    """
    return states.to(matmul_dtype(states))


def to_at_least_float32(values: Tensor) -> Tensor:
    """Cast `values` to float32, unless their dtype is wider. Sums over many tokens need this precision."""
    return values.to(torch.promote_types(values.dtype, torch.float32))
