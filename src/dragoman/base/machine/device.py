"""Choice of PyTorch's device and number of threads."""

from typing import TYPE_CHECKING

from dragoman.base.errors import ConfigError

if TYPE_CHECKING:
    import torch


def choose_device(name: str = "auto") -> "torch.device":
    """Return the device named `cpu`, `cuda` or `cuda:N`; `auto` selects the first GPU, or the CPU if there is no GPU.

    On a GPU, attention kernels that are slow on new shapes are turned off (`keep_fast_attention_kernels`). Raises
    ConfigError if the device is not available.
    """
    from dragoman.base.machine.kernels import keep_fast_attention_kernels  # imports torch, which is slow

    device = _device(name)
    keep_fast_attention_kernels(device)
    return device


def _device(name: str) -> "torch.device":
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"unknown device '{name}': expected auto, cpu, cuda or cuda:N")
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"the device '{name}' is not available on this machine ({reason}): use cpu") from None
    return device


def use_threads(threads: int | None) -> None:
    """Set the number of PyTorch's CPU threads in this process. If `threads` is None, leave it unchanged."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
