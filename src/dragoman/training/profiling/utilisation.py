"""Model FLOPs utilisation: the FLOP/s of training, relative to the FLOP/s of a large matrix product."""

import time
from dataclasses import dataclass

import torch

_SECONDS = 0.1
"""Minimum duration of the measurement."""
_SIZE = {"cpu": 1024, "cuda": 8192}


@dataclass(frozen=True)
class Utilisation:
    """The cost of a token and the speed of the machine.

    flops_per_token: FLOPs of the model's matrix products in the forward and backward pass per target token without
    padding, including its part of the source tokens (see `flops_per_target_token`). rate: FLOP/s of one device
    for a large square product in the run's precision, measured when the run was started or resumed (see
    `measure_rate`). devices: number of devices.
    """

    flops_per_token: float
    rate: float
    devices: int = 1

    def fraction(self, tokens_per_second: float) -> float:
        """Return the model FLOPs utilisation (MFU), usually between 0 and 1.

        Source: Chowdhery et al. 2022, "PaLM", appendix B.

        tokens_per_second: target tokens per second of all devices, including end-of-sentence symbols but not padding.
        Padding and recomputation lower the utilisation, as does all other work outside these matrix products.
        """
        return self.flops_per_token * tokens_per_second / (self.rate * self.devices)

    def describe(self, unit: str = "target token") -> str:
        """Return `rate` and `flops_per_token` as text. unit: name of a target token in the message."""
        times = f"{self.devices} times " if self.devices > 1 else ""
        return (
            f"MFU is relative to {times}{self.rate / 1e9:,.0f} GFLOP/s, measured with a large matrix product; "
            f"{self.flops_per_token / 1e6:,.1f} MFLOP per {unit}"
        )


def measure_rate(device: torch.device, precision: torch.dtype) -> float:
    """Measure the FLOP/s of a square matrix product.

    The result is that of the fastest product within a tenth of a second, after one product for warm-up. The matrices
    have 1024 rows on a CPU, where torch's current number of threads is used. They have 8192 rows on a GPU, because
    smaller matrices would not keep it busy.
    """
    size = _SIZE.get(device.type, 1024)
    matrix = torch.ones(size, size, dtype=precision, device=device)
    result = matrix @ matrix
    _synchronise(device)
    fastest, start = float("inf"), time.perf_counter()
    while time.perf_counter() < start + _SECONDS:
        started = time.perf_counter()
        torch.mm(matrix, matrix, out=result)
        _synchronise(device)
        fastest = min(fastest, time.perf_counter() - started)
    return 2 * size**3 / fastest


def _synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
