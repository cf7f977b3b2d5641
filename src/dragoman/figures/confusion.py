"""`Confusion`: numbers of examples by correct and predicted label."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dragoman.figures.canvas import colour_map, draw_frame, new_figure
from dragoman.figures.figure import Figure
from dragoman.figures.style import INK, QUIET, SHADES
from dragoman.metrics.labels.classification import ConfusionMatrix

if TYPE_CHECKING:
    import matplotlib.figure

_MAX_NUMBERED = 30
"""Number of rows or columns up to which the cells contain their counts."""
_DARK = 0.5


@dataclass(frozen=True, eq=False, kw_only=True)
class Confusion(Figure):
    """Counts (N, M) with labelled rows and columns. axes: names of the rows and of the columns."""

    kind: ClassVar[str] = "confusion"

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    counts: NDArray[np.int64]
    axes: tuple[str, str]

    def details(self) -> dict[str, Any]:
        """Return the labels and the names of the axes."""
        return {"rows": list(self.rows), "columns": list(self.columns), "axes": list(self.axes)}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the counts (N, M) as `counts`."""
        return {"counts": self.counts}

    def table(self) -> Iterator[Sequence[Any]]:
        """Yield one row per pair of labels."""
        yield *self.axes, "count"
        for row, counts in zip(self.rows, self.counts.tolist(), strict=True):
            for column, count in zip(self.columns, counts, strict=True):
                yield row, column, count

    def draw(self) -> "matplotlib.figure.Figure":
        """Draw the counts; the colour of a cell is its fraction of the row, so that rare rows are visible."""
        fractions = self.counts / np.maximum(self.counts.sum(1, keepdims=True), 1)
        height, width = (1.8 + 0.42 * size for size in self.counts.shape)
        figure = new_figure(width + 1.2, height + 0.4)
        panel = figure.add_subplot()
        panel.imshow(fractions, cmap=colour_map(SHADES), vmin=0, vmax=1, interpolation="nearest")
        panel.set_xticks(range(self.counts.shape[1]), self.columns, rotation=90, fontsize=8, parse_math=False)
        panel.set_yticks(range(self.counts.shape[0]), self.rows, fontsize=8, parse_math=False)
        panel.tick_params(colors=QUIET, length=0)
        panel.set_xlabel(self.axes[1], fontsize=9, color=QUIET)
        panel.set_ylabel(self.axes[0], fontsize=9, color=QUIET)
        if max(self.counts.shape) <= _MAX_NUMBERED:
            for (row, column), count in np.ndenumerate(self.counts):
                colour = "white" if fractions[row, column] > _DARK else INK
                panel.text(column, row, f"{count:,}", ha="center", va="center", fontsize=8, color=colour)
        draw_frame(panel)
        figure.suptitle(self.title, fontsize=12, color=INK, x=0.02, ha="left")
        return figure


def label_confusion(matrix: ConfusionMatrix) -> Confusion:
    """Return the figure of a confusion matrix of labels."""
    return Confusion(
        title="Confusion matrix",
        caption="The number of examples of each class (row) by predicted class (column). The colour is the fraction of "
        "the row.",
        rows=matrix.labels,
        columns=matrix.labels,
        counts=np.asarray(matrix.counts, np.int64),
        axes=("correct", "predicted"),
    )
