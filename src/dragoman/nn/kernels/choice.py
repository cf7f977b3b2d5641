"""The choice between PyTorch's operations and the Triton kernels of this folder."""

from functools import cache

import torch
from torch import Tensor

from dragoman.base.log import warn


def uses_kernels(states: Tensor) -> bool:
    """Return whether a layer computes states with the kernels of this folder: in bfloat16 on a GPU, in training.

    Under autocast, which mixes precisions, and in compiled layers, PyTorch's operations are used.
    """
    return (
        states.dtype == torch.bfloat16
        and torch.is_grad_enabled()
        and not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled(states.device.type)
        and triton_runs(states.device)
    )


@cache
def triton_runs(device: torch.device) -> bool:
    """Return whether Triton's kernels run on a device: a GPU, with Triton, a C compiler and Python's headers."""
    if device.type != "cuda":
        return False
    from dragoman.nn.kernels import residual  # importing Triton is slow

    if not residual.AVAILABLE:
        return False
    try:
        ones = torch.ones(5, device=device)
        return torch.equal(residual.added(ones, ones, 0.0), 2 * ones)
    except Exception as error:  # Triton, the compiler and the driver raise exceptions of many types
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        warn(f"Triton's kernels cannot run on this GPU, so training uses PyTorch's, which are slower: {reason}")
        return False
