"""Conversion of attention scores into weights."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.nn.mask import Mask

# Number of float32 values in the widest vector register of a CPU.
_LANES = 16

# Below this value, ln softplus(x) equals x − eˣ/2 to twelve digits; slightly further below, softplus underflows.
_FAR_BELOW = -15.0

Normaliser = Literal["softmax", "sum"]


def normalise(scores: Tensor, mask: Mask | None, normaliser: Normaliser = "softmax") -> Tensor:
    """Convert scores (…, T, S) into weights that sum to 1 per query, and are zero at masked keys.

    All weights of a query without an allowed key are zero.
    """
    if normaliser == "sum":  # p/Σp equals the softmax of ln p, which does not underflow
        near = functional.softplus(scores.clamp_min(_FAR_BELOW)).log()
        far = scores.clamp_max(_FAR_BELOW)
        scores = torch.where(scores < _FAR_BELOW, far - far.exp() / 2, near)
    weights = _softmax(scores, None if mask is None else mask.bias)
    return weights if mask is None else mask.clear_empty_rows(weights)


def _softmax(scores: Tensor, bias: Tensor | None) -> Tensor:
    """Return the softmax of scores plus bias over the last axis, computed in at least float32 and rounded once.

    Rows shorter than a vector register are padded with −∞, because torch's CPU kernels process them one number at a
    time, in bfloat16 up to four times slower than in float32.
    """
    logits = scores.to(torch.promote_types(scores.dtype, torch.float32))
    logits = logits if bias is None else logits + bias
    keys = scores.size(-1)
    if scores.device.type != "cpu" or keys >= _LANES:
        return torch.softmax(logits, -1).to(scores.dtype)
    filled = functional.pad(logits, (0, _LANES - keys), value=float("-inf"))
    return torch.softmax(filled, -1)[..., :keys].to(scores.dtype)
