"""The number type of a run's matrix products, its automatic choice, and loss scaling for float16."""

import time
from dataclasses import dataclass

import torch

from dragoman.base.errors import DivergenceError
from dragoman.base.log import warn

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_ENOUGH = 1.3
"""bfloat16 is chosen if its products are this many times as fast; below that its rounding errors are not worth it."""
_TENSOR_CORES = (7, 0)
"""The lowest CUDA compute capability whose products are faster in float16 than in float32."""
_TOO_SLOW = 2.0
"""If small products in bfloat16 take this many times as long as in float32, large ones are not measured."""


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """Choose the number type of matrix products; `auto` is bfloat16 if its products are at least 1.3 times as fast.

    A GPU without bfloat16 uses float16 if its tensor cores support it. The choice is stored with the run, because it
    depends on a measurement.
    """
    if name != "auto":
        return PRECISIONS[name]
    if bfloat16_speed(device) > _ENOUGH:
        return torch.bfloat16
    if device.type == "cuda" and torch.cuda.get_device_capability(device) >= _TENSOR_CORES:
        return torch.float16
    return torch.float32


def warn_of_slow_products(name: str, device: torch.device, resumed: bool) -> None:
    """Warn if this machine is slow at the run's precision, which may have been chosen on another machine.

    resumed: whether the run resumes a snapshot.
    """
    if name == "bfloat16" and bfloat16_speed(device) < 1 / _ENOUGH:
        caution = "; sums then round differently, which a resumed run tolerates" if resumed else ""
        warn(
            "this machine multiplies bfloat16 more slowly than float32: "
            f"train.precision=float32 would be faster{caution}"
        )


def bfloat16_speed(device: torch.device) -> float:
    """Return the speed in bfloat16, relative to float32, of a matrix product of a feed-forward layer's size.

    On a GPU nothing is measured: the result is infinity if it supports bfloat16, 0 if it would emulate it.
    """
    if device.type == "cuda":
        return float("inf") if torch.cuda.is_bf16_supported(including_emulation=False) else 0.0
    for rows, rounds in ((128, 3), (1024, 12)):
        narrow, wide = _product_seconds(rows, rounds, torch.bfloat16, torch.float32)
        if narrow > _TOO_SLOW * wide:
            break
    return wide / narrow


def _product_seconds(rows: int, rounds: int, *kinds: torch.dtype) -> list[float]:
    """Return the shortest time (seconds) of several products, per type.

    Types are measured alternately, so that other load on the machine affects all of them.
    """
    factors = [(torch.ones(rows, 512, dtype=kind), torch.ones(512, 1024, dtype=kind)) for kind in kinds]
    seconds = [float("inf")] * len(kinds)
    for _ in range(rounds):
        for index, (states, weight) in enumerate(factors):
            start = time.perf_counter()
            states @ weight
            seconds[index] = min(seconds[index], time.perf_counter() - start)
    return seconds


_FIRST = 2.0**16
_LARGEST = 2.0**24
_SMALLEST = 2.0**-10
_PATIENCE = 2000


@dataclass
class LossScale:
    """Dynamic loss scaling (Micikevicius et al. 2018, "Mixed Precision Training", section 3.2).

    The loss is multiplied by `value` before the backward pass, and the gradients are divided by it afterwards. An
    update whose gradients overflow is skipped and the scale halved; after 2,000 updates without overflow it is doubled.
    It is a power of two, so scaling rounds nothing.

    steps: updates since the last change of the scale.
    """

    value: float = _FIRST
    steps: int = 0

    def update(self, overflowed: bool, step: int) -> None:
        """Adjust the scale after the gradients of update `step`. Raises DivergenceError if every scale overflows."""
        self.steps += 1
        if overflowed:
            self.value, self.steps = self.value / 2, 0
            if self.value < _SMALLEST:
                raise DivergenceError(
                    f"gradients overflow float16 at step {step} even with the smallest loss scale. Earlier "
                    "checkpoints are kept. Start again with train.precision=float32, or with a lower "
                    "train.schedule.peak"
                )
        elif self.steps >= _PATIENCE and self.value < _LARGEST:
            self.value, self.steps = self.value * 2, 0
