"""The model that every program trains, and how."""

from dataclasses import dataclass

DROPOUT, SMOOTHING, PIECES = 0.1, 0.1, 10_000
LEARNING_RATE, WARMUP, CLIP = 1e-3, 400, 1.0


@dataclass(frozen=True)
class Sizes:
    """Of a post-norm Transformer with one table of pieces for source, target and projection."""

    width: int
    layers: int
    heads: int
    feedforward: int


SIZES = {"small": Sizes(256, 3, 4, 1024), "base": Sizes(512, 6, 8, 2048)}


def rate(step: int) -> float:
    """The learning rate of a 1-based step: a straight line up, then the inverse square root."""
    return LEARNING_RATE * min(step / WARMUP, (WARMUP / step) ** 0.5)
