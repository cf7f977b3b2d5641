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
    """Return whether Triton's kernels run on a device, and compute there what PyTorch computes.

    They need a GPU, Triton, a C compiler and Python's headers. A warning says once why they are not used.
    """
    if device.type != "cuda":
        return False
    from dragoman.nn.kernels import check, residual  # importing Triton is slow

    if not residual.AVAILABLE:
        return False
    try:
        with torch.enable_grad():
            differing = check.differing_kernel(device)
        reason = None if differing is None else f"the results of its {differing} differ from PyTorch's"
    except Exception as error:  # Triton, the compiler and the driver raise exceptions of many types
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    if reason is not None:
        warn(f"training uses PyTorch's operations, which are slower than kernels of Triton: {reason}")
    return reason is None
