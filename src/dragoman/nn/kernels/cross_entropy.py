"""The gradient of the cross-entropy with respect to logits, computed in their place."""

import torch
from torch import Tensor

from dragoman.nn.kernels.backend import kernels


def differentiate_logits(logits: Tensor, labels: Tensor, kept: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Replace logits (n, V) by kept · (softmax(logits) − (1 − smoothing) · onehot(labels)).

    labels: (n,) int64. kept: (n,) float32, the weight of each row. Returns kept · −ln softmax(logits)[label] and kept ·
    logits[label], both (n,) float32. In the smoothed loss, the part of the other entries is linear in the logits, so
    its gradient is a constant, which the caller adds.
    """
    labels, kept = labels.contiguous(), kept.contiguous()
    losses = torch.empty_like(kept), torch.empty_like(kept)
    kernels(logits.device).differentiate_logits(logits, labels, kept, losses, smoothing)
    return losses
