"""Sinusoidal positions: sines and cosines of decreasing frequency."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from dragoman.nn.positions.absolute import AbsoluteScheme, Encoding
from dragoman.nn.positions.tables import growing_table

Layout = Literal["alternating", "halves"]


class SinusoidalConfig(AbsoluteScheme):
    """Sinusoidal positions, by default without a length limit (Vaswani et al. 2017, section 3.5).

    In the paper, sines and cosines alternate. Its reference implementation (tensor2tensor) and Marian use a permutation
    of the components in which all sines precede all cosines.
    """

    kind: Literal["sinusoidal"] = "sinusoidal"
    base: float = Field(10000.0, gt=1, description="Base of the wavelengths, without unit (paper: 10000).")
    layout: Layout = Field(
        "alternating",
        description="Order of the components. alternating: sine, cosine, sine … (paper). halves: all sines, then all "
        "cosines.",
    )
    first: int = Field(
        0, ge=0, le=1000, description="Number of the position of the first token (paper: 0; fairseq and M2M-100: 2)."
    )
    limit: int | None = Field(
        None,
        ge=1,
        description="Maximum input length in tokens, including the end of sentence. Longer inputs are rejected. "
        "null: no limit.",
    )

    def encoding(self, width: int) -> "Sinusoidal":
        """Build the table of sines and cosines."""
        return Sinusoidal(width, self.base, self.layout, self.limit, self.first)


class Sinusoidal(Encoding):
    """PE(pos, 2i) = sin(pos / base^(2i/d)) and PE(pos, 2i+1) = cos(pos / base^(2i/d)).

    The layout `halves` places all even components before all odd components.
    """

    def __init__(
        self,
        width: int,
        base: float = 10000.0,
        layout: Layout = "alternating",
        limit: int | None = None,
        first: int = 0,
    ) -> None:
        super().__init__(width)
        self.base, self.layout, self.limit, self.first = base, layout, limit, first
        self.anchor: Tensor
        self.register_buffer("anchor", torch.empty(0), persistent=False)  # determines the device

    def forward(self, start: int, length: int, mask: Tensor | None = None) -> Tensor:
        """Return rows of the table: (length, width) float32."""
        start += self.first
        return _table(start + length, self.anchor.device, self.width, self.base, self.layout)[start : start + length]


def sinusoids(length: int, width: int, base: float = 10000.0, layout: Layout = "alternating") -> Tensor:
    """Return the matrix of position vectors (length, width) float32, computed in float64 on the CPU."""
    positions = torch.arange(length, dtype=torch.float64, device="cpu")[:, None]
    exponents = torch.arange(0, width, 2, dtype=torch.float64, device="cpu") / width
    angles = positions / base**exponents
    sines, cosines = angles.sin(), angles.cos()[:, : width // 2]
    if layout == "halves":
        return torch.cat((sines, cosines), 1).float()
    matrix = torch.empty(length, width, dtype=torch.float64, device="cpu")
    matrix[:, 0::2], matrix[:, 1::2] = sines, cosines
    return matrix.float()


_table = growing_table(sinusoids)
