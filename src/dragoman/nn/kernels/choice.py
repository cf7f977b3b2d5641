"""The choice between PyTorch's operations and the kernels of this folder."""

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from dragoman.base.log import warn


def uses_kernels(states: Tensor) -> bool:
    """Return whether a layer computes states with the kernels of this folder: in bfloat16, in training.

    Under autocast, which mixes precisions, and in compiled layers, PyTorch's operations are used.
    """
    return (
        states.dtype == torch.bfloat16
        and torch.is_grad_enabled()
        and not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled(states.device.type)
        and kernels_run(states.device)
    )


@cache
def kernels_run(device: torch.device) -> bool:
    """Return whether the kernels run on a device, and compute there what PyTorch computes.

    Those of a GPU need Triton, a C compiler and Python's headers; those of a CPU need a C compiler or a wheel with
    compiled libraries. A warning says once why they are not used.
    """
    if device.type not in ("cpu", "cuda") or (device.type == "cuda" and find_spec("triton") is None):
        return False
    from dragoman.nn.kernels import check

    try:
        with torch.enable_grad():
            differing = check.differing_kernel(device)
        reason = None if differing is None else f"the results of its {differing} differ from PyTorch's"
    except Exception as error:  # Triton, the compiler and the driver raise exceptions of many types
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    if reason is not None:
        language = "Triton" if device.type == "cuda" else "C"
        warn(f"training uses PyTorch's operations, which are slower than kernels in {language}: {reason}")
    return reason is None
