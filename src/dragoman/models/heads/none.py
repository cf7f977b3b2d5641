"""Models without a head: pre-trained encoders, whose states represent texts."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from dragoman.base.settings.config import Config
from dragoman.models.heads.texts import pool
from dragoman.models.interface import Memory
from dragoman.nn.precision import to_at_least_float32


class NoHeadConfig(Config):
    """No output layer: the model is a pre-trained encoder, such as an imported BERT, whose states represent texts.

    It predicts no labels. Its texts have vectors, and `train.start` trains it with another head. YAML: `head: {kind:
    none}`.
    """

    kind: Literal["none"] = "none"
    hidden: bool = Field(
        False,
        description="Keep a layer tanh(Wx + b) of width d for the first symbol, BERT's pooler, with which the hidden "
        "layer of another head is initialised.",
    )

    def build(self, width: int, table: nn.Embedding) -> "NoHead":
        """Build the layer for states of this width. table: the token vectors (V, d), which this head does not use."""
        return NoHead(width, self.hidden)


class NoHead(nn.Module):
    """An encoder without an output layer."""

    timed = (("forward", "head"),)

    def __init__(self, width: int, hidden: bool) -> None:
        super().__init__()
        self.hidden = nn.Linear(width, width) if hidden else None

    def forward(self, memory: Memory) -> Tensor:
        """Return the vectors (B, d) of the first symbols, after the hidden layer if there is one."""
        vectors = pool(memory, "first")
        return to_at_least_float32(vectors if self.hidden is None else torch.tanh(self.hidden(vectors)))
