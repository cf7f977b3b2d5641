"""The precision of a run's matrix products: automatic choice, and loss scaling for float16."""

from dataclasses import dataclass

import torch

from dragoman.base.errors import DivergenceError
from dragoman.base.log import info, warn
from dragoman.base.machine.kernels import bfloat16_speed

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_MIN_SPEEDUP = 1.3
"""Minimum speedup at which bfloat16 is chosen; a smaller one does not justify its rounding errors."""
_MIN_CAPABILITY = (7, 0)
"""The lowest CUDA compute capability with tensor cores, which make products faster in float16 than in float32."""


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """Choose the dtype of matrix products. `auto` chooses bfloat16 if its products are at least 1.3 times as fast.

    For a GPU without bfloat16, `auto` chooses float16 if the GPU has tensor cores. The choice is stored with the run,
    because it depends on a measurement.
    """
    if name != "auto":
        return PRECISIONS[name]
    speed = bfloat16_speed(device)
    if device.type == "cpu":
        info(f"Precision: products in bfloat16 have {speed:.2g} times the speed of those in float32")
    if speed > _MIN_SPEEDUP:
        return torch.bfloat16
    if device.type == "cuda" and torch.cuda.get_device_capability(device) >= _MIN_CAPABILITY:
        return torch.float16
    return torch.float32


def warn_of_slow_products(name: str, device: torch.device, resumed: bool) -> None:
    """Warn if this machine is slow in the run's precision, which may have been chosen on another machine.

    resumed: whether the run resumes a snapshot.
    """
    if name == "bfloat16" and bfloat16_speed(device) < 1 / _MIN_SPEEDUP:
        caution = ". A resumed run may use it, although sums then round differently" if resumed else ""
        warn(
            "this machine multiplies bfloat16 more slowly than float32: "
            f"train.precision=float32 would be faster{caution}"
        )


_INITIAL_SCALE = 2.0**16
_MAX_SCALE = 2.0**24
_MIN_SCALE = 2.0**-10
_GROWTH_INTERVAL = 2000


@dataclass
class LossScale:
    """Dynamic loss scaling (Micikevicius et al. 2018, "Mixed Precision Training", section 3.2).

    The loss is multiplied by `value` before the backward pass, and the gradients are divided by it afterwards. If the
    gradients overflow, the update is skipped and the scale is halved. After 2,000 updates without overflow, the scale
    is doubled. Scaling causes no rounding errors, because the scale is a power of two.

    steps: number of updates since the last change of the scale.
    """

    value: float = _INITIAL_SCALE
    steps: int = 0

    def update(self, overflowed: bool, step: int) -> None:
        """Adjust the scale after the gradients of update `step`. Raises DivergenceError if every scale overflows."""
        self.steps += 1
        if overflowed:
            self.value, self.steps = self.value / 2, 0
            if self.value < _MIN_SCALE:
                raise DivergenceError(
                    f"gradients overflow float16 at step {step} even with the smallest loss scale. Earlier "
                    "checkpoints are kept. Start again with train.precision=float32, or with a lower "
                    "train.schedule.peak"
                )
        elif self.steps >= _GROWTH_INTERVAL and self.value < _MAX_SCALE:
            self.value, self.steps = self.value * 2, 0
