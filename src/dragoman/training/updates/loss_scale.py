"""`LossScale`: what keeps gradients within the range of float16."""

from dataclasses import dataclass

from dragoman.base.errors import DivergenceError

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
