"""The bridge: initial states of a recurrent decoder, computed from the source's summary."""

from typing import Literal

import torch
from torch import Tensor, nn

from dragoman.nn.recurrent.cell import States

BridgeKind = Literal["initial", "concatenate", "both", "none"]


class InitialStates(nn.Module):
    """tanh(Ws + b), one vector per state of each layer (Bahdanau et al. 2015, appendix A.2.2, without biases)."""

    def __init__(self, width: int, hidden: int, layers: int, components: int) -> None:
        super().__init__()
        self.layers, self.components = layers, components
        self.linear = nn.Linear(width, layers * components * hidden)

    def forward(self, summary: Tensor) -> list[States]:
        """The source's summary (B, d) → the states (B, H) of each layer."""
        chunks = torch.tanh(self.linear(summary)).to(self.linear.weight.dtype).chunk(self.layers * self.components, 1)
        return [tuple(chunks[layer * self.components : (layer + 1) * self.components]) for layer in range(self.layers)]
