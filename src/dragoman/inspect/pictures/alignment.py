"""Word alignments of a sentence pair as a picture."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from dragoman.inspect.pictures.figure import SHADES, save
from dragoman.inspect.pictures.sheet import Sheet


def draw_alignments(
    source: Sequence[str], target: Sequence[str], alignments: Mapping[str, Iterable[tuple[int, int]]], *files: Path
) -> None:
    """Draw alignments side by side: a row per source word, a column per target word, and a dark cell per link.

    alignments: the links (source word, target word), from 0, by heading. files: output files; the format is PNG or SVG,
    according to the suffix.
    """
    sheet = Sheet.with_labels(1, len(alignments), source, target)
    figure, axes = sheet.begin("Word alignment")
    for column, (heading, links) in enumerate(alignments.items()):
        matrix = np.zeros((len(source), len(target)))
        for row, cell in links:
            matrix[row, cell] = 1
        sheet.panel(axes, 0, column, heading, matrix, cmap=SHADES, vmin=0, vmax=1)
    sheet.end(axes)
    save(figure, *files)
