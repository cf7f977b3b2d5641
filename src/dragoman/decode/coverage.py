"""The coverage penalty: what a translation loses for source positions that its attention passed over."""

import torch
from torch import Tensor


def penalty(coverage: Tensor) -> Tensor:
    """Σ_i log(min(coverage_i, 1)) of each row: (…, S) summed attention, 1 at padding → (…), never above 0.

    Wu et al. 2016, equation 14, without its β. A position that got no attention at all counts as the smallest normal
    float32 (−87.3 nats) instead of −∞, so that scores stay finite and comparable.
    """
    return coverage.clamp(min=torch.finfo(torch.float32).tiny, max=1.0).log().sum(-1)
