"""The penalty on heads with equal attention weights."""

import torch
from torch import Tensor


def head_diversity(weights: Tensor, query_mask: Tensor | None) -> tuple[Tensor, Tensor | float]:
    """Return the sum of ‖AAᵀ − I‖²_F over queries, and the number of queries (deck 002; Lin et al. 2017, equation 8).

    A is (h, S), the attention weights of all heads for one query. weights: (B, h, T, S). query_mask: bool, one value
    per query, False at padding.
    """
    rows = weights.float().transpose(1, 2)  # (B, T, h, S)
    gram = torch.matmul(rows, rows.transpose(2, 3))
    distance = (gram - torch.eye(gram.size(-1), device=gram.device)).square().sum((2, 3))
    if query_mask is None:
        return distance.sum(), float(distance.numel())
    return (distance * query_mask.reshape(distance.shape)).sum(), query_mask.sum()
