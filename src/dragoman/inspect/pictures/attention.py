"""Heat maps of attention weights: of one layer, and of all layers and heads of one kind."""

from collections.abc import Sequence
from math import ceil, sqrt
from pathlib import Path

import numpy as np

from dragoman.inspect.attention import AttentionMap
from dragoman.inspect.pictures.figure import SHADES, SIGNED, save
from dragoman.inspect.pictures.sheet import Beyond, Sheet

Panel = tuple[str, np.ndarray]
"""A heading with weights (T, S)."""

_SMALL = 1.9
"""Side of a panel in inches, in pictures of all layers and heads."""

_SHOWN = 0.995
"""Share of the weights within the colour scale; larger weights have the colour of the scale's end."""

_KINDS = {"cross_attention": "attention over the source", "self_attention": "self-attention"}


def draw_attention(attention: AttentionMap, *files: Path) -> None:
    """Draw the mean over the heads and each head, labelled with tokens. files: PNG or SVG, by suffix."""
    panels = _panels(attention)
    columns = _columns(len(panels), *attention.weights.shape[1:])
    rows = [panels[first : first + columns] for first in range(0, len(panels), columns)]
    sheet = Sheet.fitting(len(rows), columns, attention.queries, attention.keys)
    layer = f", layer {attention.layer}" if attention.layer else ""
    _draw(f"{_title(attention)}{layer}", rows, sheet, files)


def draw_overview(attentions: Sequence[AttentionMap], *files: Path) -> None:
    """Draw all attention layers of one kind, one row per layer, the mean first. Long texts are not labelled."""
    first = attentions[0]
    rows = [_panels(each, f"layer {each.layer}, " if each.layer else "") for each in attentions]
    sheet = Sheet.small(len(rows), max(map(len, rows)), first.queries, first.keys, _SMALL)
    _draw(f"{_title(first)}: all layers and heads", rows, sheet, files)


def _title(attention: AttentionMap) -> str:
    side, _, kind = attention.kind.partition(".")
    return f"{side.capitalize()}: {_KINDS.get(kind, kind)}"


def _panels(attention: AttentionMap, above: str = "") -> list[Panel]:
    heads = [(f"{above}head {number}", weights) for number, weights in enumerate(attention.weights, start=1)]
    return heads if len(heads) == 1 else [(f"{above}mean of the heads", attention.mean), *heads]


def _columns(count: int, height: int, width: int) -> int:
    """Return the number of columns that makes the picture about 1.5 times as wide as high."""
    return min(count, max(1, ceil(sqrt(1.5 * count * height / width))))


def _draw(title: str, rows: Sequence[Sequence[Panel]], sheet: Sheet, files: Sequence[Path]) -> None:
    """Draw all panels with the same colour scale."""
    everything = [weights for row in rows for _, weights in row]
    sizes = np.abs(np.concatenate([weights.ravel() for weights in everything]))
    # the first tokens of a text have few tokens to attend to, so their weights are always large
    most = float(np.quantile(sizes[sizes > 0], _SHOWN)) if sizes.any() else 1.0
    signed = any(bool((weights < 0).any()) for weights in everything)
    scale = {"cmap": SIGNED if signed else SHADES, "vmin": -most if signed else 0, "vmax": most}
    figure, axes = sheet.begin(title)
    for row, panels in enumerate(rows):
        for column, (heading, weights) in enumerate(panels):
            image = sheet.panel(axes, row, column, heading, weights, **scale)
    sums = np.concatenate([weights.sum(1) for weights in everything])
    each = "; each row sums to 1" if np.allclose(sums, 1, atol=1e-3) else ""
    beyond: Beyond = None if sizes.max() <= most else "both" if signed else "max"
    sheet.end(figure, axes, image, f"weight of a column's token for a row's{each}", beyond)
    save(figure, *files)
