"""The model that every program trains, and how."""

from dataclasses import dataclass
from typing import Any

DROPOUT, SMOOTHING, PIECES = 0.1, 0.1, 10_000
LEARNING_RATE, WARMUP, CLIP = 1e-3, 400, 1.0


@dataclass(frozen=True)
class Sizes:
    """Of a post-norm Transformer with one table of pieces for source, target and projection."""

    width: int
    layers: int
    heads: int
    feedforward: int

    def settings(self) -> dict[str, Any]:
        """The section `model` of a recipe of dragoman's."""
        layers = {"layers": self.layers, "heads": self.heads, "feedforward": self.feedforward, "norm": "post"}
        sides = {side: {"kind": "transformer", **layers} for side in ("encoder", "decoder")}
        return {"preset": None, "width": self.width, **sides, "positions": {"kind": "sinusoidal"}, "dropout": DROPOUT}


SIZES = {"small": Sizes(256, 3, 4, 1024), "base": Sizes(512, 6, 8, 2048)}


def rate(step: int) -> float:
    """The learning rate of a 1-based step: a straight line up, then the inverse square root."""
    return LEARNING_RATE * min(step / WARMUP, (WARMUP / step) ** 0.5)
