"""`Confusion`: numbers of examples by correct and predicted label."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dragoman.figures.figure import Figure
from dragoman.metrics.labels.classification import ConfusionMatrix

if TYPE_CHECKING:
    import matplotlib.figure


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
        """Draw the counts; the colour of a cell is its share of the row, so that rare rows are visible."""
        from dragoman.figures.pictures.confusion import draw_confusion

        return draw_confusion(self.title, self.counts, (self.rows, self.columns), self.axes)


def label_confusion(matrix: ConfusionMatrix) -> Confusion:
    """Return the figure of a confusion matrix of labels."""
    return Confusion(
        title="Confusion matrix",
        caption="The number of examples of each class (row) by predicted class (column). The colour is the share of "
        "the row.",
        rows=matrix.labels,
        columns=matrix.labels,
        counts=np.asarray(matrix.counts, np.int64),
        axes=("correct", "predicted"),
    )
