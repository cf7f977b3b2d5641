"""Rotary positions: queries and keys are rotated by an angle proportional to their position (Su et al. 2021)."""

from functools import cache
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.nn.positions.scheme import PositionScheme, RelativePositions

_FIRST_LENGTH = 512


class RotaryConfig(PositionScheme):
    """Components 2i, 2i+1 of q and k are rotated by the angle pos·base^(−2i/d_k) (Su et al. 2021, equation 34).

    The dot product of two rotated vectors depends on the distance of their positions alone, except with the scorers
    general and additive, which multiply by matrices first. Any length. YAML: `positions: {kind: rotary}`.
    """

    kind: Literal["rotary"] = "rotary"
    inside_attention: ClassVar[bool] = True
    base: float = Field(10000.0, gt=1, description="Base of the angles (no unit; default: the paper's value).")

    def build_relative(self, heads: int, query_width: int, key_width: int, value_width: int) -> "Rotary":
        """Build the rotation. Raises ConfigError for widths that are odd or differ."""
        if key_width % 2:
            raise ConfigError(
                f"rotary positions rotate pairs of components, but the width of a head's keys is {key_width}: choose "
                "width and heads so that d/h is even, or set the attention's key_width"
            )
        if query_width != key_width:
            raise ConfigError(
                f"rotary positions need queries and keys of equal width, but they have {query_width} and {key_width}: "
                "remove query_width, or choose another kind"
            )
        return Rotary(self.base)


class Rotary(RelativePositions):
    """(x_2i, x_2i+1) → (x_2i cos − x_2i+1 sin, x_2i sin + x_2i+1 cos), that is x_2i + i·x_2i+1 times e^(i·angle)."""

    def __init__(self, base: float) -> None:
        super().__init__()
        self.base = base

    def rotate(self, vectors: Tensor, start: int, left_padding: Tensor | None = None) -> Tensor:
        """(B, h, T, d_k) → the same shape; angles are at least float32, whatever the type of the vectors."""
        end, width = start + vectors.size(-2), vectors.size(-1)
        wide = vectors.to(torch.promote_types(vectors.dtype, torch.float32))
        pairs = wide.view(*wide.shape[:-1], width // 2, 2)
        positions: slice | Tensor = slice(start, end)
        if left_padding is not None:
            numbers = torch.arange(start, end, device=vectors.device) - left_padding[:, None]
            positions = numbers.clamp_min(0)[:, None]
        if torch.compiler.is_compiling():  # the compiler does not fuse complex numbers and would fix the table's length
            angles = rotary_angles(end, width, self.base, vectors.device)[positions]
            cosine, sine = angles.cos().to(wide.dtype), angles.sin().to(wide.dtype)
            even, odd = pairs.unbind(-1)
            rotated = torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), -1)
        else:
            # a rotation is a complex product, a single operation in torch, forward and backward
            rotations = _rotations(max(_FIRST_LENGTH, 1 << (end - 1).bit_length()), width, self.base, vectors.device)
            rotated = torch.view_as_real(torch.view_as_complex(pairs) * rotations[positions])
        return rotated.flatten(-2).to(vectors.dtype)


@cache  # a captured CUDA graph keeps the address of a table, so no table may be freed
def _rotations(length: int, width: int, base: float, device: torch.device) -> Tensor:
    """Return e^(i·angle), (length, width/2) complex64, computed in float64 and shared by all layers and models."""
    with torch.inference_mode(False):  # a table built during translation must be usable in training
        angles = rotary_angles(length, width, base, torch.device("cpu"))
        return torch.polar(torch.ones_like(angles), angles).to(torch.complex64).to(device)


def rotary_angles(length: int, width: int, base: float, device: torch.device) -> Tensor:
    """Return pos·base^(−2i/d_k), (length, width/2) float64."""
    exponents = torch.arange(0, width, 2, dtype=torch.float64, device=device) / width
    return torch.arange(length, dtype=torch.float64, device=device)[:, None] / base**exponents
