"""Position schemes: how a model knows where in the sentence a token stands."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from dragoman.base.config import Config


class SinusoidalConfig(Config):
    """Fixed sines and cosines added to the embeddings (Vaswani et al. 2017, section 3.5)."""

    kind: Literal["sinusoidal"] = "sinusoidal"
    base: float = Field(10000.0, gt=1, description="base of the wavelengths (no unit; the paper's value)")


class Sinusoidal(nn.Module):
    """PE(pos, 2i) = sin(pos / base^(2i/d)), PE(pos, 2i+1) = cos(the same); any length."""

    def __init__(self, config: SinusoidalConfig, width: int) -> None:
        super().__init__()
        self.base, self.width = config.base, width
        self.table: Tensor
        self.register_buffer("table", sinusoids(512, width, config.base), persistent=False)

    def embed(self, embeddings: Tensor, start: int) -> Tensor:
        """Add the encodings of positions start … start+T−1 to embeddings (…, T, d)."""
        end = start + embeddings.size(-2)
        if end > self.table.size(0):
            with torch.inference_mode(False):  # a table made while translating must serve training too
                self.table = sinusoids(2 * end, self.width, self.base).to(self.table.device)
        return embeddings + self.table[start:end].to(embeddings.dtype)


def sinusoids(length: int, width: int, base: float = 10000.0) -> Tensor:
    """The encoding matrix (length, width) float32, computed in float64."""
    positions = torch.arange(length, dtype=torch.float64)[:, None]
    exponents = torch.arange(0, width, 2, dtype=torch.float64) / width
    angles = positions / base**exponents
    matrix = torch.empty(length, width, dtype=torch.float64)
    matrix[:, 0::2] = angles.sin()
    matrix[:, 1::2] = angles.cos()[:, : width // 2]
    return matrix.float()
