"""A picture with the attention weights of its regions, one panel per word of its caption (Xu et al. 2015, figure 3)."""

from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import DataError
from dragoman.figures.canvas import new_figure, save
from dragoman.figures.style import INK, ORANGE
from dragoman.models.attention_weights import AttentionMap

_PANEL, _MAX_COLUMNS = 1.5, 8
"""Side of a panel in inches, and maximum number of panels per row."""

_DARK = 0.25
"""Brightness of a region without weight."""


class RegionPicture(NamedTuple):
    """A picture that is divided into regions of equal size. file: PNG or JPEG. Regions are numbered row by row."""

    file: Path
    rows: int
    columns: int


def read_picture(picture: RegionPicture, regions: int) -> NDArray[np.float64]:
    """Return the pixels (height, width, 3) of a picture, from 0 to 1.

    regions: number of regions that the model has read. Raises DataError if it is not that of the picture, and if the
    file cannot be read.
    """
    from matplotlib.image import imread

    if picture.rows * picture.columns != regions:
        raise DataError(
            f"the picture is divided into {picture.rows} × {picture.columns} regions, but the input has {regions} "
            "vectors: change --grid"
        )
    try:
        pixels = np.asarray(imread(picture.file))
    except (OSError, ValueError, SyntaxError) as error:
        raise DataError(f"cannot read the picture {picture.file}: {error}") from None
    values = pixels.astype(np.float64) / (255 if pixels.dtype == np.uint8 else 1)
    values = np.repeat(values[:, :, None], 3, 2) if values.ndim == 2 else values
    if values.shape[2] < 3:
        values = np.repeat(values[:, :, :1], 3, 2)
    return values[:, :, :3]


def draw_regions(pixels: NDArray[np.float64], picture: RegionPicture, attention: AttentionMap, *files: Path) -> None:
    """Draw the picture once per word, with the brightness of each region given by its mean weight over the heads.

    The region with the largest weight has a frame. files: output files; the format is PNG or SVG, according to the
    suffix.
    """
    regions = picture.rows * picture.columns
    words = [(word, row[:regions]) for word, row in zip(attention.queries, attention.mean, strict=True)]
    columns = min(len(words), _MAX_COLUMNS)
    rows = ceil(len(words) / columns)
    figure = new_figure(_PANEL * columns, (_PANEL + 0.3) * rows)
    height, width = pixels.shape[:2]
    for number, (word, weights) in enumerate(words, 1):
        axes = figure.add_subplot(rows, columns, number)
        axes.set_axis_off()
        axes.set_title(word, fontsize=10, color=INK, parse_math=False)
        axes.imshow(pixels * _brightness(weights, picture, height, width)[:, :, None], interpolation="nearest")
        position: Any = divmod(int(weights.argmax()), picture.columns)
        cell = width / picture.columns, height / picture.rows
        left, top = position[1] * cell[0] - 0.5, position[0] * cell[1] - 0.5
        outline = ([left, left + cell[0], left + cell[0], left, left], [top, top, top + cell[1], top + cell[1], top])
        axes.plot(*outline, color=ORANGE, linewidth=1.2)
        axes.text(
            left + cell[0] / 2, top + cell[1], f"{weights.max():.2f}", fontsize=6, color=ORANGE, ha="center", va="top"
        )
    save(figure, *files)


def _brightness(weights: NDArray[Any], picture: RegionPicture, height: int, width: int) -> NDArray[np.float64]:
    """Return the brightness of each pixel (height, width): 1 for the largest weight."""
    cells = (weights / max(float(weights.max()), 1e-9)).reshape(picture.rows, picture.columns)
    rows = np.arange(height) * picture.rows // height
    columns = np.arange(width) * picture.columns // width
    return _DARK + (1 - _DARK) * np.asarray(cells[rows][:, columns], np.float64)
