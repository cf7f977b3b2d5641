"""Which device to compute on."""

import torch

from dragoman.base.errors import ConfigError


def choose_device(name: str = "auto") -> torch.device:
    """The device of that name, cpu, cuda or cuda:N; `auto` is the first GPU, or the CPU.

    Raises ConfigError for one that is not there.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"there is no device '{name}'; use auto, cpu, cuda or cuda:N")
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"the device '{name}' cannot be used here ({reason}); use cpu") from None
    return device
