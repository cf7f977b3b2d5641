"""The type that a run's matrix products are computed in, and whether this machine is made for it."""

import time
from dataclasses import dataclass

import torch

from dragoman.base.errors import DivergenceError
from dragoman.base.log import warn

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_ENOUGH = 1.3
"""bfloat16 is chosen where its products are so many times as fast; below that its roundings are not worth it."""
_TENSOR_CORES = (7, 0)
"""CUDA's compute capability from which on products in float16 are faster than in float32."""
_HOPELESS = 2.0
"""Where small products in bfloat16 take so many times as long as in float32, large ones are not waited for."""


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """The type of matrix products; `auto` is bfloat16 where this machine multiplies it at least 1.3 times as fast.

    A GPU without bfloat16 whose tensor cores multiply float16 takes that. The choice is stored with the run, because it
    comes from a measurement.
    """
    if name != "auto":
        return PRECISIONS[name]
    if bfloat16_speed(device) > _ENOUGH:
        return torch.bfloat16
    if device.type == "cuda" and torch.cuda.get_device_capability(device) >= _TENSOR_CORES:
        return torch.float16
    return torch.float32


def warn_of_slow_products(name: str, device: torch.device, resumed: bool) -> None:
    """Say so where a run is given, or has been given on another machine, a precision that this machine is slow in.

    resumed: whether there is something that the run goes on with.
    """
    if name == "bfloat16" and bfloat16_speed(device) < 1 / _ENOUGH:
        caution = "; sums are then rounded otherwise, which a run can go on with" if resumed else ""
        warn(
            "this machine multiplies bfloat16 more slowly than float32: "
            f"train.precision=float32 would be faster{caution}"
        )


def bfloat16_speed(device: torch.device) -> float:
    """How many times as fast as in float32 a product of a feed-forward layer's size is.

    A GPU is not measured, but asked: infinity where it has bfloat16, 0 where it would emulate it.
    """
    if device.type == "cuda":
        return float("inf") if torch.cuda.is_bf16_supported(including_emulation=False) else 0.0
    for rows, rounds in ((128, 3), (1024, 12)):
        narrow, wide = _product_seconds(rows, rounds, torch.bfloat16, torch.float32)
        if narrow > _HOPELESS * wide:
            break
    return wide / narrow


def _product_seconds(rows: int, rounds: int, *kinds: torch.dtype) -> list[float]:
    """The least time of several products of each type.

    By turns, so that a moment in which the machine does something else strikes all types.
    """
    factors = [(torch.ones(rows, 512, dtype=kind), torch.ones(512, 1024, dtype=kind)) for kind in kinds]
    seconds = [float("inf")] * len(kinds)
    for _ in range(rounds):
        for index, (states, weight) in enumerate(factors):
            begin = time.perf_counter()
            states @ weight
            seconds[index] = min(seconds[index], time.perf_counter() - begin)
    return seconds


_FIRST = 2.0**16
_LARGEST = 2.0**24
_SMALLEST = 2.0**-10
_PATIENCE = 2000


@dataclass
class LossScale:
    """Dynamic loss scaling (Micikevicius et al. 2018, "Mixed Precision Training", section 3.2).

    The loss is multiplied by `value` before the backward pass and gradients are divided by it after. An update whose
    gradients overflow is left out, and the scale halved; after 2,000 updates without one it is doubled. As a power of
    two it rounds nothing itself.

    steps: updates since the scale was last changed.
    """

    value: float = _FIRST
    steps: int = 0

    def judge(self, overflowed: bool, step: int) -> None:
        """After the gradients of update `step`. Raises DivergenceError when no scale helps any more."""
        self.steps += 1
        if overflowed:
            self.value, self.steps = self.value / 2, 0
            if self.value < _SMALLEST:
                raise DivergenceError(
                    f"gradients overflow float16 at step {step}, however small the loss is scaled. Checkpoints written "
                    "before are kept. Start again with train.precision=float32, or with a lower train.schedule.peak"
                )
        elif self.steps >= _PATIENCE and self.value < _LARGEST:
            self.value, self.steps = self.value * 2, 0
