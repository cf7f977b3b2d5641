"""Masks as heat maps: which keys each query may attend to, drawn from given masks or read off a model."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.figures.heat_maps import HeatMap, HeatMaps
from dragoman.models.attention_weights import AttentionMap, record_rows
from dragoman.models.interface import Model

_SLIDE = "deck 000, positions, self-attention, masks, heads; deck 002, the decoder, training, evaluation"


def mask_maps(
    masks: Mapping[str, NDArray[np.bool_]], queries: Sequence[str], keys: Sequence[str], caption: str = ""
) -> HeatMaps:
    """Return masks side by side.

    masks: (T, S) bool by heading, True where a query (row) may attend to a key (column). queries, keys: labels of the
    T queries and S keys. caption: added to the caption of the figure.
    """
    panels = tuple(HeatMap(heading, mask.astype(np.float32)) for heading, mask in masks.items())
    return HeatMaps(
        title="Attention masks",
        caption=f"A query (row) may attend to the keys (columns) whose value is 1. {caption}".strip(),
        slide=_SLIDE,
        rows=tuple(queries),
        columns=tuple(keys),
        grid=(panels,),
        unit="",
        full_scale=True,
    )


def applied_masks(model: Model, length: int) -> HeatMaps | None:
    """Return the masks that a model applies to a text of `length` tokens per side, the last quarter of which is
    padding in the source; None if no attention has weights for all pairs of tokens.

    The masks are read off the weights of an artificial text, so they are those of any mechanism, such as a window. The
    model, in evaluation mode, has arbitrary parameters.
    """
    trial, padding = model.trial(length), length // 4
    source: tuple[Any, ...] = trial.source
    has_padding = len(source) == 2 and source[1].dtype == torch.bool and padding > 0
    if has_padding:
        mask = source[1].clone()
        mask[:, length - padding :] = False
        source = (source[0], mask)
    inputs = () if trial.inputs is None else (trial.inputs,)
    masks: dict[str, NDArray[np.bool_]] = {}
    for name, weights in record_rows(model, *source, *inputs).items():
        if weights.shape[-2:] == (length, length):
            kind = AttentionMap(name, weights[0], (), ()).kind.replace(".", ": ").replace("_", " ")
            masks[kind] = masks.get(kind, False) | (weights[0] != 0).any(0)
    if not masks:
        return None
    labels = [str(number) for number in range(1, length + 1)]
    note = f"The last {padding} tokens of the source are padding." if has_padding else ""
    return mask_maps(masks, labels, labels, note)
