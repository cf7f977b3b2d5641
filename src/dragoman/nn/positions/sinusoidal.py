"""Sines and cosines of falling frequency."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from dragoman.nn.positions.absolute import AbsoluteScheme, Encoding

_FIRST_LENGTH = 512


class SinusoidalConfig(AbsoluteScheme):
    """Fixed sines and cosines for any length (Vaswani et al. 2017, section 3.5)."""

    kind: Literal["sinusoidal"] = "sinusoidal"
    base: float = Field(10000.0, gt=1, description="base of the wavelengths (no unit; the paper's value)")

    def encoding(self, width: int) -> "Sinusoidal":
        """The table of sines and cosines."""
        return Sinusoidal(width, self.base)


class Sinusoidal(Encoding):
    """PE(pos, 2i) = sin(pos / base^(2i/d)), PE(pos, 2i+1) = cos(the same)."""

    def __init__(self, width: int, base: float = 10000.0) -> None:
        super().__init__(width)
        self.base = base
        self.table: Tensor
        self.register_buffer("table", torch.empty(_FIRST_LENGTH, width), persistent=False)
        if not self.table.is_meta:  # a model that is only tried out may be of any size
            self.table = sinusoids(_FIRST_LENGTH, width, base)

    def forward(self, start: int, length: int, keep: Tensor | None = None) -> Tensor:
        """(length, width); the table grows as far as it is asked for."""
        end, table = start + length, self.table  # another thread may put a shorter table in its place meanwhile
        if end > table.size(0):
            with torch.inference_mode(False):  # a table made while translating must serve training too
                table = self.table = sinusoids(2 * end, self.width, self.base).to(table.device)
        return table[start:end]


def sinusoids(length: int, width: int, base: float = 10000.0) -> Tensor:
    """The encoding matrix (length, width) float32, computed in float64, always on the CPU."""
    positions = torch.arange(length, dtype=torch.float64, device="cpu")[:, None]
    exponents = torch.arange(0, width, 2, dtype=torch.float64, device="cpu") / width
    angles = positions / base**exponents
    matrix = torch.empty(length, width, dtype=torch.float64, device="cpu")
    matrix[:, 0::2] = angles.sin()
    matrix[:, 1::2] = angles.cos()[:, : width // 2]
    return matrix.float()
