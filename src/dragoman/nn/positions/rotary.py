"""Rotary positions: queries and keys are rotated by an angle proportional to their position (Su et al. 2021)."""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.nn.positions.scheme import PositionScheme, RelativePositions
from dragoman.nn.positions.tables import growing_table


class RotaryConfig(PositionScheme):
    """Rotary positions: components 2i, 2i+1 of q and k are rotated by pos·base^(−2i/d_k) (Su et al. 2021, equation 34).

    The dot product of two rotated vectors depends only on the distance between their positions. This does not hold for
    the general and additive scorers, which multiply the vectors by matrices first. The length of texts is not limited.

    YAML: `positions: {kind: rotary}`
    """

    kind: Literal["rotary"] = "rotary"
    inside_attention: ClassVar[bool] = True
    base: float = Field(10000.0, gt=1, description="Base of the angles, without unit (paper: 10000).")

    def build_relative(self, heads: int, query_width: int, key_width: int, value_width: int) -> "Rotary":
        """Build the rotation. Raises ConfigError if the widths of queries and keys are odd or differ."""
        if key_width % 2:
            raise ConfigError(
                f"rotary positions need keys of even width, but the keys of a head have width {key_width}: choose "
                "width and heads so that d/h is even, or set key_width of the attention"
            )
        if query_width != key_width:
            raise ConfigError(
                f"rotary positions need queries and keys of equal width, but their widths are {query_width} and "
                f"{key_width}: remove query_width, or choose another kind of positions"
            )
        return Rotary(self.base)


class Rotary(RelativePositions):
    """The rotation (x_2i, x_2i+1) → (x_2i cos θ − x_2i+1 sin θ, x_2i sin θ + x_2i+1 cos θ).

    With imaginary unit j, this is the complex product of x_2i + j·x_2i+1 and e^(jθ).
    """

    def __init__(self, base: float) -> None:
        super().__init__()
        self.base = base

    def rotations(self, length: int, width: int, device: torch.device) -> Tensor:
        """Return e^(jθ) for vectors (…, width) at the first positions, (length, width/2) complex64."""
        return _rotations(length, device, width, self.base)

    def rotate(self, vectors: Tensor, start: int, left_padding: Tensor | None = None) -> Tensor:
        """Rotate vectors (B, h, T, d_k). Computed in at least float32, regardless of the dtype of the vectors."""
        end, width = start + vectors.size(-2), vectors.size(-1)
        wide = vectors.to(torch.promote_types(vectors.dtype, torch.float32))
        pairs = wide.view(*wide.shape[:-1], width // 2, 2)
        positions: slice | Tensor = slice(start, end)
        if left_padding is not None:
            row_positions = torch.arange(start, end, device=vectors.device) - left_padding[:, None]
            positions = row_positions.clamp_min(0)[:, None]
        if (
            torch.compiler.is_compiling()
        ):  # the compiler does not fuse complex operations and specialises on table sizes
            angles = rotary_angles(end, width, self.base, vectors.device)[positions]
            cosine, sine = angles.cos().to(wide.dtype), angles.sin().to(wide.dtype)
            even, odd = pairs.unbind(-1)
            rotated = torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), -1)
        else:
            # As a complex product, the rotation is a single torch operation in the forward and backward passes.
            rotations = self.rotations(end, width, vectors.device)
            rotated = torch.view_as_real(torch.view_as_complex(pairs) * rotations[positions])
        return rotated.flatten(-2).to(vectors.dtype)


@growing_table
def _rotations(length: int, width: int, base: float) -> Tensor:
    """Return e^(jθ) for all angles θ, (length, width/2) complex64, computed in float64."""
    angles = rotary_angles(length, width, base, torch.device("cpu"))
    return torch.polar(torch.ones_like(angles), angles).to(torch.complex64)


def rotary_angles(length: int, width: int, base: float, device: torch.device) -> Tensor:
    """Return the angles pos·base^(−2i/d_k), (length, width/2) float64."""
    exponents = torch.arange(0, width, 2, dtype=torch.float64, device=device) / width
    return torch.arange(length, dtype=torch.float64, device=device)[:, None] / base**exponents
