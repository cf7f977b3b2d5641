"""Heat maps of the attention weights of one layer, or of all layers and heads of one kind."""

from collections.abc import Sequence
from math import ceil, sqrt
from pathlib import Path

import numpy as np

from dragoman.inspect.attention import AttentionMap
from dragoman.inspect.pictures.figure import SHADES, SIGNED, save
from dragoman.inspect.pictures.sheet import ExtendedEnds, Sheet

Panel = tuple[str, np.ndarray]
"""A heading and weights (T, S)."""

_OVERVIEW_PANEL = 1.9
"""Side of a panel in inches in pictures of all layers and heads."""

_SCALE_QUANTILE = 0.995
"""Quantile of the weights at which the colour scale ends. Larger weights have the colour of the scale's end."""

_KINDS = {"cross_attention": "attention over the source", "self_attention": "self-attention"}


def draw_attention(attention: AttentionMap, *files: Path) -> None:
    """Draw the mean over the heads and each head, labelled with tokens.

    files: output files; the format is PNG or SVG, according to the suffix.
    """
    panels = _panels(attention)
    columns = _columns(len(panels), *attention.weights.shape[1:])
    rows = [panels[first : first + columns] for first in range(0, len(panels), columns)]
    sheet = Sheet.with_labels(len(rows), columns, attention.queries, attention.keys)
    layer = f", layer {attention.layer}" if attention.layer else ""
    _draw(f"{_title(attention)}{layer}", rows, sheet, files)


def draw_overview(attentions: Sequence[AttentionMap], *files: Path) -> None:
    """Draw all attention layers of one kind, one row per layer, with the mean over the heads first.

    Long texts are not labelled. files: output files; the format is PNG or SVG, according to the suffix.
    """
    first = attentions[0]
    rows = [_panels(each, f"layer {each.layer}, " if each.layer else "") for each in attentions]
    sheet = Sheet.overview(len(rows), max(map(len, rows)), first.queries, first.keys, _OVERVIEW_PANEL)
    _draw(f"{_title(first)}: all layers and heads", rows, sheet, files)


def _title(attention: AttentionMap) -> str:
    side, _, kind = attention.kind.partition(".")
    return f"{side.capitalize()}: {_KINDS.get(kind, kind)}"


def _panels(attention: AttentionMap, prefix: str = "") -> list[Panel]:
    heads = [(f"{prefix}head {number}", weights) for number, weights in enumerate(attention.weights, start=1)]
    return heads if len(heads) == 1 else [(f"{prefix}mean of the heads", attention.mean), *heads]


def _columns(count: int, height: int, width: int) -> int:
    """Return the number of columns for a picture that is about 1.5 times as wide as it is high."""
    return min(count, max(1, ceil(sqrt(1.5 * count * height / width))))


def _draw(title: str, rows: Sequence[Sequence[Panel]], sheet: Sheet, files: Sequence[Path]) -> None:
    """Draw all panels with the same colour scale."""
    matrices = [weights for row in rows for _, weights in row]
    magnitudes = np.abs(np.concatenate([weights.ravel() for weights in matrices]))
    # the first tokens of a text attend to few tokens, so their weights are always large
    limit = float(np.quantile(magnitudes[magnitudes > 0], _SCALE_QUANTILE)) if magnitudes.any() else 1.0
    is_signed = any(bool((weights < 0).any()) for weights in matrices)
    scale = {"cmap": SIGNED if is_signed else SHADES, "vmin": -limit if is_signed else 0, "vmax": limit}
    figure, axes = sheet.begin(title)
    for row, panels in enumerate(rows):
        for column, (heading, weights) in enumerate(panels):
            image = sheet.panel(axes, row, column, heading, weights, **scale)
    sums = np.concatenate([weights.sum(1) for weights in matrices])
    note = " (each row sums to 1)" if np.allclose(sums, 1, atol=1e-3) else ""
    extend: ExtendedEnds = None if magnitudes.max() <= limit else "both" if is_signed else "max"
    sheet.end(axes)
    sheet.colour_bar(figure, image, f"attention weight, from row token to column token{note}", extend)
    save(figure, *files)
