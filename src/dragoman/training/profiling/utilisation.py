"""Model FLOPs utilisation: how much of what the machine can multiply the training steps do."""

import time
from dataclasses import dataclass

import torch

_SECONDS = 0.1
"""How long products are timed at least."""
_SIZE = {"cpu": 1024, "cuda": 8192}


@dataclass(frozen=True)
class Utilisation:
    """What a token costs, and what the machine gives.

    flops_per_token: multiplications and additions of the model's matrix products in forward and backward pass, a target
    token that is not padding, its share of the source tokens with it (see `flops_per_target_token`).
    rate: of one device, FLOP/s of a large square product at the run's precision, measured when the run was started or
    resumed, not a data sheet's (see `measure_rate`). devices: how many work together.
    """

    flops_per_token: float
    rate: float
    devices: int = 1

    def share(self, tokens_per_second: float) -> float:
        """Model FLOPs utilisation (MFU; Chowdhery et al. 2022, "PaLM", appendix B), usually between 0 and 1.

        tokens_per_second: target tokens of all devices together, padding not counted, end-of-sentence counted.
        Products spent on padding or made again lower it, like everything else that takes time.
        """
        return self.flops_per_token * tokens_per_second / (self.rate * self.devices)

    def describe(self) -> str:
        """Both numbers, for the user."""
        times = f"{self.devices} times " if self.devices > 1 else ""
        return (
            f"MFU is of {times}{self.rate / 1e9:,.0f} GFLOP/s, a large matrix product measured here; "
            f"{self.flops_per_token / 1e6:,.1f} MFLOP a target token"
        )


def measure_rate(device: torch.device, precision: torch.dtype) -> float:
    """FLOP/s of a square matrix product: the fastest of several in a tenth of a second, after one to warm up.

    1024 rows on a CPU, with the threads that torch has now; 8192 on a GPU, which needs so many to be busy.
    """
    size = _SIZE.get(device.type, 1024)
    matrix = torch.ones(size, size, dtype=precision, device=device)
    result = matrix @ matrix
    _finish(device)
    fastest, begin = float("inf"), time.perf_counter()
    while time.perf_counter() < begin + _SECONDS:
        started = time.perf_counter()
        torch.mm(matrix, matrix, out=result)
        _finish(device)
        fastest = min(fastest, time.perf_counter() - started)
    return 2 * size**3 / fastest


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
