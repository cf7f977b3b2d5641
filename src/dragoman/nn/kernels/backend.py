"""The kernels of a device."""

import torch

from dragoman.nn.kernels.interface import Kernels


def kernels(device: torch.device) -> Kernels:
    """Return the kernels for a device: in C for a CPU, in Triton for a GPU. Importing Triton is slow."""
    if device.type == "cpu":
        from dragoman.nn.kernels import cpu

        return cpu
    from dragoman.nn.kernels.gpu import kernels as gpu

    return gpu
