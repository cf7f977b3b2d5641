"""The sizes of the model of `dragoman demo`, one of which is chosen by the speed of the machine."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_MEASURED_SECONDS = 2.0
_LAYERS = 8.0
"""An update of `SMALL` takes as long as this number of passes of `layer_seconds`, measured on two Zen 3 cores."""
_PATIENCE = 240.0
"""Seconds of training for which a larger size is chosen."""


@dataclass(frozen=True)
class DemoSize:
    """A size of the model, with the updates that it needs.

    width, feedforward, vocabulary: sizes of the model. tokens: size of a batch. updates: length of the training.
    cost: time of an update, relative to that of `SMALL`.
    """

    width: int
    feedforward: int
    vocabulary: int
    tokens: int
    updates: int
    cost: float

    def seconds(self, layer: float) -> float:
        """Return the expected duration of the training. layer: the result of `layer_seconds`."""
        return self.updates * self.cost * _LAYERS * layer

    def settings(self) -> dict[str, Any]:
        """Return the settings of a recipe for this size."""
        side = {"layers": 2, "norm": "pre", "feedforward": self.feedforward}
        return {
            "data": {"batch": {"tokens": self.tokens}},
            "text": {"subword": {"size": self.vocabulary}},
            "model": {"preset": "tiny", "width": self.width, "dropout": 0.1, "encoder": side, "decoder": dict(side)},
            "train": {
                "max_steps": self.updates,
                "validate_every": self.updates // 8,
                "checkpoint_every": self.updates // 8,
                "log_every": 25,
                "schedule": {"kind": "cosine", "peak": 3e-3, "warmup": 0.1},
            },
        }


SMALL = DemoSize(width=128, feedforward=256, vocabulary=1000, tokens=1024, updates=2000, cost=1.0)
LARGE = DemoSize(width=256, feedforward=1024, vocabulary=3000, tokens=2048, updates=1500, cost=4.0)
SIZES = (SMALL, LARGE)


def choose_size(layer: float, sizes: Sequence[DemoSize] = SIZES) -> DemoSize:
    """Return the last size whose training takes at most four minutes, or the first one. layer: of `layer_seconds`."""
    return next((size for size in reversed(sizes) if size.seconds(layer) <= _PATIENCE), sizes[0])


def layer_seconds(seconds: float = _MEASURED_SECONDS) -> float:
    """Measure the mean duration of a forward and backward pass of a Transformer layer over 1,024 tokens, on the CPU.

    It is measured for two seconds, with all threads and beside all other programs, unlike the fastest pass, because the
    training also runs beside them.
    """
    import torch

    layer = torch.nn.TransformerEncoderLayer(SMALL.width, 4, SMALL.feedforward, batch_first=True)
    tokens = torch.ones(64, 16, SMALL.width)
    passes, start = -1, time.monotonic()
    while passes < 1 or time.monotonic() - start < seconds:
        layer(tokens).sum().backward()
        passes += 1
        if passes == 0:  # the first pass allocates memory
            start = time.monotonic()
    return (time.monotonic() - start) / passes
