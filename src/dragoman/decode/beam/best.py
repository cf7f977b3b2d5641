"""The k best of each row, with ties going to the lower index, without sorting or copying the whole row."""

import torch
from torch import Tensor

_LOW_BITS = 0xFFFFFFFF


def best(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest of each row of values (R, N) float32: values and indices, each (R, count), best first.

    Equal values are taken and listed by ascending index, which `torch.topk` leaves open. NaN counts as the largest.
    """
    rows, width = values.shape
    group = max(1, int((width / count) ** 0.5))
    groups = width // group
    if groups <= count:
        indices = _keyed(values, torch.arange(width, device=values.device).expand(rows, width), count)
    else:
        # The `count` best elements lie in the `count` groups of neighbours with the best maxima (lower groups first
        # among equals): any element elsewhere is beaten by the best element of each of these.
        body = groups * group
        maxima = values[:, :body].view(rows, groups, group).amax(2)
        chosen = _keyed(maxima, torch.arange(groups, device=values.device).expand(rows, groups), count)
        inside = (chosen.unsqueeze(2) * group + torch.arange(group, device=values.device)).flatten(1)
        tail = torch.arange(body, width, device=values.device).expand(rows, width - body)
        positions = torch.cat([inside, tail], 1)
        indices = _keyed(values.gather(1, positions), positions, count)
    return values.gather(1, indices), indices


def _keyed(values: Tensor, positions: Tensor, count: int) -> Tensor:
    """The `positions` (R, N) of the `count` largest values, by (value descending, position ascending).

    Both are packed into one integer whose order is that order: a float32's bits compare as an integer's once those of
    negative numbers are flipped.
    """
    bits = (values + 0.0).contiguous().view(torch.int32)  # + 0.0 makes −0 and 0 one number
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    keys = (ordered.long() << 32) | (_LOW_BITS - positions)
    return _LOW_BITS - (keys.topk(count, dim=1).values & _LOW_BITS)
