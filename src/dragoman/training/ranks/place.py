"""`Place`: where a model computes, and in what precision."""

from dataclasses import dataclass, field

import torch

from dragoman.training.ranks.interface import Ranks


@dataclass(frozen=True)
class Place:
    """device: of this process; precision: of matrix products; ranks: the processes that share the work."""

    device: torch.device
    precision: torch.dtype = torch.float32
    ranks: Ranks = field(default_factory=lambda: Ranks("cpu"))

    def autocast(self) -> torch.autocast:
        """The context in which a model runs at that precision."""
        return torch.autocast(self.device.type, self.precision, enabled=self.precision != torch.float32)
