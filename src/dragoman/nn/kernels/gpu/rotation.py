"""The rotation of vectors by their positions, with PyTorch's operations."""

import torch
from torch import Tensor

from dragoman.nn.kernels.interface import Rotation


def rotate(vectors: Tensor, rotation: Rotation, heads: tuple[int, int], inverse: bool) -> None:
    """See `Kernels.rotate`."""
    count, width = heads
    rotated = vectors[:, : count * width]
    factors = rotation.table[rotation.positions].unsqueeze(1)
    pairs = torch.view_as_complex(rotated.float().view(len(vectors), count, width // 2, 2))
    products = torch.view_as_real(pairs * (factors.conj() if inverse else factors))
    rotated.copy_(products.flatten(1))
