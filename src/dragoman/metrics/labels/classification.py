"""Metrics of classification: accuracy, precision, recall, F1, and Matthews correlation, from a confusion matrix.

The definitions are those of scikit-learn with `zero_division=0`: the precision of a class that was never predicted, the
recall of a class that does not occur, and the F1 of a class with neither are 0. Macro F1 is the mean over the classes
that occur in the correct labels or in the predictions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import DataError
from dragoman.base.table import TEXT_WIDTH, Table

Floats = NDArray[np.float64]

_CORNER = "gold \\ predicted"


@dataclass(frozen=True)
class ClassScores:
    """Precision, recall and F1 (percent) of a class or span type.

    support: number of examples, or spans, of the class. predicted: number of predictions of the class.
    """

    name: str
    precision: float
    recall: float
    f1: float
    support: int
    predicted: int

    @staticmethod
    def of(name: str, correct: int, support: int, predicted: int) -> "ClassScores":
        """Compute the scores from counts. correct: number of predictions that are correct."""
        precision, recall = percent(correct, predicted), percent(correct, support)
        return ClassScores(name, precision, recall, percent(2 * correct, support + predicted), support, predicted)


def percent(part: float, whole: float) -> float:
    """Return 100 · part / whole, or 0 if the whole is 0."""
    return 100 * part / whole if whole else 0.0


@dataclass(frozen=True)
class ConfusionMatrix:
    """Numbers of examples by correct label and prediction. labels: K names. counts: (K, K), rows are correct labels."""

    labels: tuple[str, ...]
    counts: NDArray[np.int64]

    @staticmethod
    def of(gold: Sequence[str], predicted: Sequence[str], labels: Sequence[str] | None = None) -> "ConfusionMatrix":
        """Count the pairs of correct and predicted labels.

        labels: the order of the labels; by default, the labels that occur, in alphabetical order. Raises DataError if
        the numbers of labels differ or are 0, or if `labels` lacks a label that occurs.
        """
        check_equal_lengths(gold, predicted)
        names = list(dict.fromkeys(labels)) if labels is not None else sorted({*gold, *predicted})
        index = {name: number for number, name in enumerate(names)}
        unknown = sorted({*gold, *predicted} - index.keys())
        if unknown:
            raise DataError(f"the label {unknown[0]!r} is not one of the labels {', '.join(names)}")
        codes = np.array([index[name] for name in gold]) * len(names) + np.array([index[name] for name in predicted])
        counts = np.bincount(codes, minlength=len(names) ** 2).reshape(len(names), len(names))
        return ConfusionMatrix(tuple(names), counts)

    @property
    def values(self) -> dict[str, float]:
        """All values by key: accuracy, macro_f1, micro_f1, weighted_f1 (percent), matthews (−1 to 1)."""
        correct, support, predicted = (
            array.astype(np.float64)[None] for array in (self.counts.diagonal(), self.counts.sum(1), self.counts.sum(0))
        )
        return {key: float(value[0]) for key, value in classification_values(correct, support, predicted).items()}

    @property
    def accuracy(self) -> float:
        """Percentage of correct predictions."""
        return self.values["accuracy"]

    @property
    def macro_f1(self) -> float:
        """Unweighted mean of F1 over the classes that occur in the correct labels or in the predictions (percent)."""
        return self.values["macro_f1"]

    @property
    def micro_f1(self) -> float:
        """F1 of all decisions together (percent), which equals the accuracy if each example has one label."""
        return self.values["micro_f1"]

    @property
    def weighted_f1(self) -> float:
        """Mean of F1 over the classes, weighted by their numbers of examples (percent)."""
        return self.values["weighted_f1"]

    @property
    def matthews(self) -> float:
        """Matthews correlation for K classes (Gorodkin 2004); 0 if all labels or all predictions are equal."""
        return self.values["matthews"]

    @property
    def classes(self) -> tuple[ClassScores, ...]:
        """The scores of all labels, in their order."""
        correct, support, predicted = self.counts.diagonal(), self.counts.sum(1), self.counts.sum(0)
        return tuple(
            ClassScores.of(name, int(correct[i]), int(support[i]), int(predicted[i]))
            for i, name in enumerate(self.labels)
        )

    def table(self) -> Table:
        """Return a table with one row per correct label and one column per prediction.

        The columns have numbers instead of names if the table would not fit a terminal.
        """
        cells = [[str(count) for count in row] for row in self.counts.tolist()]
        rows, columns = list(self.labels), list(self.labels)
        longest = max(len(_CORNER), *map(len, columns))
        if longest + sum(max(8, len(name)) + 2 for name in columns) > TEXT_WIDTH:
            rows = [f"{number} {name}" for number, name in enumerate(self.labels, 1)]
            columns = [str(number) for number in range(1, len(columns) + 1)]
        table = [[_CORNER, *columns], *([name, *row] for name, row in zip(rows, cells, strict=True))]
        return Table(table, right=1)


def classification_values(correct: Floats, support: Floats, predicted: Floats) -> dict[str, Floats]:
    """Compute all metrics, by key, of S test sets: (S,) each.

    correct, support, predicted: (S, K) numbers of correct predictions, examples, and predictions of each class.
    """
    total = support.sum(-1)
    occurs = support + predicted > 0
    f1 = 2 * correct / np.where(occurs, support + predicted, 1)
    hits = correct.sum(-1)
    # Gorodkin (2004), as a correlation of K classes: covariance of labels and predictions over the standard deviations
    covariance = hits * total - (support * predicted).sum(-1)
    variances = (total**2 - (support**2).sum(-1)) * (total**2 - (predicted**2).sum(-1))
    accuracy = 100 * hits / total
    return {
        "accuracy": accuracy,
        "macro_f1": 100 * f1.sum(-1) / occurs.sum(-1),
        "micro_f1": accuracy,
        "weighted_f1": 100 * (f1 * support).sum(-1) / total,
        "matthews": np.where(variances > 0, covariance / np.sqrt(np.where(variances > 0, variances, 1)), 0.0),
    }


class ResampledClassification:
    """The metrics of resampled test sets. Only the numbers of the pairs of labels that occur are needed."""

    def __init__(self, gold: Sequence[str], predicted: Sequence[str], labels: Sequence[str]) -> None:
        """gold, predicted: N labels each. labels: all labels that occur."""
        index: Mapping[str, int] = {name: number for number, name in enumerate(labels)}
        codes = np.array([index[name] for name in gold]) * len(labels) + [index[name] for name in predicted]
        self._order = np.argsort(codes, kind="stable")
        cells, self._starts = np.unique(codes[self._order], return_index=True)
        rows, columns = np.divmod(cells, len(labels))
        self._rows = np.eye(len(labels))[rows]  # (C, K) for C pairs that occur
        self._columns = np.eye(len(labels))[columns]
        self._diagonal = self._rows * self._columns

    def __call__(self, counts: Floats) -> dict[str, Floats]:
        """Return the values (S,), by key. counts: (S, N) number of times that each example was drawn."""
        cells = np.add.reduceat(counts[:, self._order], self._starts, axis=1)  # (S, C)
        return classification_values(cells @ self._diagonal, cells @ self._rows, cells @ self._columns)


def check_equal_lengths(gold: Sequence[object], predicted: Sequence[object]) -> None:
    """Raise DataError if the numbers of correct values and predictions differ or are 0."""
    if len(gold) != len(predicted):
        raise DataError(f"there are {len(gold)} correct labels, but {len(predicted)} predictions: give one per example")
    if not len(gold):
        raise DataError("there are no examples to score: give at least one")
