"""Choice of PyTorch's device and number of threads."""

import warnings
from typing import TYPE_CHECKING

from dragoman.base.errors import ConfigError

if TYPE_CHECKING:
    import torch


def choose_device(name: str = "auto") -> "torch.device":
    """Return the device named `cpu`, `cuda` or `cuda:N`.

    `auto` selects the first GPU that PyTorch can use, otherwise the CPU. A warning says why a GPU cannot be used, and
    what to install.

    On a GPU, attention kernels that are slow on new shapes are turned off (`keep_fast_attention_kernels`). Raises
    ConfigError if the device is not available.
    """
    from dragoman.base.machine.kernels import keep_fast_attention_kernels  # imports torch, which is slow

    device = _device(name)
    keep_fast_attention_kernels(device)
    return device


def _device(name: str) -> "torch.device":
    import torch

    from dragoman.base.machine.gpu import find_gpu

    if name == "auto":
        return find_gpu() or torch.device("cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"unknown device '{name}': expected auto, cpu, cuda or cuda:N")
    if device.type == "cuda":
        check_gpu(device)
    return device


def check_gpu(device: "torch.device") -> None:
    """Raise ConfigError, with the reason and the remedy, if PyTorch cannot use a GPU."""
    import torch

    from dragoman.base.machine.gpu import driver_problem, gpu_problem

    problem = driver_problem()
    if problem is None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PyTorch warns of missing kernels in several lines
                torch.empty(1, device=device)
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            reason = str(error).splitlines()[0]
            raise ConfigError(f"the device '{device}' is not available on this machine ({reason}): use cpu") from None
        problem = gpu_problem(device.index or 0)
    if problem is not None:
        raise ConfigError(f"the device '{device}' cannot be used, because {problem}, or use cpu")


def use_threads(threads: int | None) -> None:
    """Set the number of PyTorch's CPU threads in this process. If `threads` is None, leave it unchanged."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
