"""What a decoder attends of the source while it predicts given targets, of many pairs at a time."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from dragoman.base.errors import ConfigError
from dragoman.data.batches.batch import collate
from dragoman.models.interface import SourceModel
from dragoman.nn.attention.interface import Attention
from dragoman.nn.attention.recording import recording


def source_attentions(model: SourceModel) -> list[Attention]:
    """The decoder's attentions over the source that weigh its tokens, the first layer's first."""
    return [
        module
        for name, module in model.named_modules()
        if name.startswith("decoder.")
        and name.endswith("cross_attention")
        and isinstance(module, Attention)
        and module.weightless is None
    ]


def chosen_attention(model: SourceModel, layer: int | None = None) -> nn.Module:
    """The attention of a layer, counted from 1.

    Default: the last but one, as in Garg et al. 2019, section 3.1; where there is only one, that. Raises ConfigError
    where the decoder has none, or not so many.
    """
    found = source_attentions(model)
    if not found:
        raise ConfigError("this model's decoder does not weigh source tokens, so it cannot tell which it looked at")
    if layer is None:
        return found[max(0, len(found) - 2)]
    if not 1 <= layer <= len(found):
        raise ConfigError(f"there is no layer {layer} that attends the source: this model has 1 to {len(found)}")
    return found[layer - 1]


def source_attention(
    model: SourceModel,
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    layer: int | None = None,
    head: int | None = None,
) -> list[np.ndarray]:
    """For each pair of source and target ids, without special symbols, (T, S) float32: the weights of T predictions.

    Row t is what is attended while target token t is predicted; the columns are the source's tokens without its end,
    so a row sums to at most 1. layer: as in `chosen_attention`; head: one of its heads, from 1; None: their mean.
    The model should be in evaluation mode. Raises ConfigError for a layer or a head that there is not.
    """
    attention = chosen_attention(model, layer)
    device = next(model.parameters()).device
    batch = collate([source for source, _ in pairs], [target for _, target in pairs], range(len(pairs))).to(device)
    with torch.inference_mode(), recording() as recorded:
        model(*batch.reads)
    weights = torch.cat(recorded[attention], 2)  # (B, heads, T + 1, S + 1)
    if head is not None and not 1 <= head <= weights.size(1):
        raise ConfigError(f"there is no head {head} that attends the source: this layer has 1 to {weights.size(1)}")
    chosen = (weights.mean(1) if head is None else weights[:, head - 1]).float().cpu().numpy()
    return [chosen[row, : len(target), : len(source)] for row, (source, target) in enumerate(pairs)]
