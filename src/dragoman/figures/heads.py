"""Heat maps of the attention weights of all layers and heads, of the heads of one layer, and of one head."""

from collections.abc import Sequence
from math import ceil, sqrt

import numpy as np

from dragoman.base.errors import ConfigError
from dragoman.figures.heat_maps import HeatMap, HeatMaps
from dragoman.models.attention_weights import AttentionMap

_KINDS = {"cross_attention": "attention over the source", "self_attention": "self-attention"}
_CAPTIONS = {
    "encoder.self_attention": "Each source token (row) attends to the source tokens (columns).",
    "decoder.self_attention": "Each predicted token (row) attends to the tokens that the decoder has read (columns).",
    "decoder.cross_attention": "Each predicted token (row) attends to the source tokens (columns).",
}
_SLIDE = "deck 000, seq2seq and its bottleneck; deck 002, RNN with attention"
_LIMITS = (
    "A large weight shows what a head reads, not what the output depends on: compare with heads switched off, or with "
    "gradients."
)


def head_grid(attentions: Sequence[AttentionMap]) -> HeatMaps:
    """Return all attention layers of one kind, one row of panels per layer, with the mean over the heads first."""
    first = attentions[0]
    rows = tuple(tuple(_panels(each, f"layer {each.layer}, " if each.layer else "")) for each in attentions)
    return _heat_maps(f"{attention_title(first)}: all layers and heads", first, rows, compact=True)


def layer_heads(attention: AttentionMap) -> HeatMaps:
    """Return the mean over the heads and each head of a layer, in rows of panels."""
    panels = _panels(attention)
    columns = _columns(len(panels), *attention.weights.shape[1:])
    rows = tuple(tuple(panels[first : first + columns]) for first in range(0, len(panels), columns))
    return _heat_maps(layer_title(attention), attention, rows)


def single_head(attention: AttentionMap, head: int | None) -> HeatMaps:
    """Return one head of a layer.

    head: number of the head, from 1; None: the mean over the heads. Raises ConfigError if the layer has no such head.
    """
    title = f"{layer_title(attention)}, {'mean of the heads' if head is None else f'head {head}'}"
    panel = HeatMap("", head_weights(attention, head), attention.layer, head)
    return _heat_maps(title, attention, ((panel,),))


def head_weights(attention: AttentionMap, head: int | None) -> np.ndarray:
    """Return the weights (T, S) of a head, from 1, or their mean over the heads for None. Raises ConfigError if the
    layer has no such head.
    """
    if head is None:
        return attention.mean
    heads = len(attention.weights)
    if not 1 <= head <= heads:
        raise ConfigError(f"there is no head {head} in {layer_title(attention)}: it has heads 1 to {heads}")
    return np.asarray(attention.weights[head - 1])


def attention_title(attention: AttentionMap) -> str:
    """Return the name of a kind of attention, such as "Decoder: attention over the source"."""
    side, _, kind = attention.kind.partition(".")
    return f"{side.capitalize()}: {_KINDS.get(kind, kind)}"


def layer_title(attention: AttentionMap) -> str:
    """Return the name of an attention layer, such as "Decoder: attention over the source, layer 2"."""
    return f"{attention_title(attention)}{f', layer {attention.layer}' if attention.layer else ''}"


def _panels(attention: AttentionMap, prefix: str = "") -> list[HeatMap]:
    layer = attention.layer
    heads = [
        HeatMap(f"{prefix}head {number}", weights, layer, number) for number, weights in enumerate(attention.weights, 1)
    ]
    return heads if len(heads) == 1 else [HeatMap(f"{prefix}mean of the heads", attention.mean, layer), *heads]


def _columns(count: int, height: int, width: int) -> int:
    """Return the number of columns for a picture that is about 1.5 times as wide as it is high."""
    return min(count, max(1, ceil(sqrt(1.5 * count * height / width))))


def _heat_maps(
    title: str, attention: AttentionMap, grid: tuple[tuple[HeatMap, ...], ...], compact: bool = False
) -> HeatMaps:
    sums = np.concatenate([each.values.sum(1) for row in grid for each in row])
    note = " (each row sums to 1)" if np.allclose(sums, 1, atol=1e-3) else ""
    return HeatMaps(
        title=title,
        caption=_CAPTIONS.get(attention.kind, "Each token (row) attends to tokens (columns)."),
        slide=_SLIDE,
        limits=_LIMITS,
        rows=attention.queries,
        columns=attention.keys,
        grid=grid,
        unit=f"attention weight, from row token to column token{note}",
        compact=compact,
    )
