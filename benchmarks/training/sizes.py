"""The model that every program trains, and its hyperparameters."""

from dataclasses import dataclass
from typing import Any

DROPOUT, SMOOTHING, PIECES = 0.1, 0.1, 10_000
LEARNING_RATE, WARMUP, CLIP = 1e-3, 400, 1.0


@dataclass(frozen=True)
class Sizes:
    """The size of a post-norm Transformer with one embedding for source, target and projection."""

    width: int
    layers: int
    heads: int
    feedforward: int

    def settings(self) -> dict[str, Any]:
        """Return the section `model` of a dragoman recipe."""
        layers = {"layers": self.layers, "heads": self.heads, "feedforward": self.feedforward, "norm": "post"}
        sides = {side: {"kind": "transformer", **layers} for side in ("encoder", "decoder")}
        return {"preset": None, "width": self.width, **sides, "positions": {"kind": "sinusoidal"}, "dropout": DROPOUT}


SIZES = {"small": Sizes(256, 3, 4, 1024), "base": Sizes(512, 6, 8, 2048), "big": Sizes(1024, 6, 16, 4096)}


def rate(step: int) -> float:
    """Return the learning rate of a step (from 1): linear warm-up, then inverse square root."""
    return LEARNING_RATE * min(step / WARMUP, (WARMUP / step) ** 0.5)
