"""`Quantised`: an array as 8-bit codes, in which a browser receives the weights of a layer."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_CODES, _HALF = 255, 127


@dataclass(frozen=True, eq=False)
class Quantised:
    """An array as codes from 0 to 255, where a code stands for the value (code − zero) · step.

    The value 0 is exact, so that masked weights remain 0, and the error of other values is at most step / 2. `zero` is
    0, or 128 for an array with negative values. The codes are for colours; numbers are read with `Figure.values_at`.
    """

    codes: NDArray[np.uint8]
    zero: int
    step: float

    @property
    def values(self) -> NDArray[np.float32]:
        """The approximate values, in the shape of the array."""
        return (self.codes.astype(np.float32) - self.zero) * np.float32(self.step)


def quantise(values: NDArray[np.floating]) -> Quantised:
    """Return an array of finite numbers as 8-bit codes. The largest absolute value is exact up to rounding."""
    if not values.size:
        return Quantised(values.astype(np.uint8), 0, 0.0)
    low, high = float(values.min()), float(values.max())
    zero, limit, levels = (128, max(-low, high), _HALF) if low < 0 else (0, high, _CODES)
    step = limit / levels
    scaled = np.zeros(values.shape) if step == 0 else values / step
    return Quantised((np.rint(scaled) + zero).astype(np.uint8), zero, step)
