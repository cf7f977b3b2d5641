"""Metrics of labels and answers that a model writes as text."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.metrics.labels.answers import answer_f1, exact_match
from dragoman.metrics.metric import check_lines, describe_references
from dragoman.metrics.summed import Statistics, SummedMetric


class FractionMetric(SummedMetric):
    """Base class of means over examples, in percent."""

    unit, by_default = "percent", False

    def statistics(self, hypotheses: Sequence[str], *references: Sequence[str]) -> Statistics:
        """Return the value (0 to 1) of each output, and 1, (N, 2).

        Raises DataError for unequal numbers of lines or empty references.
        """
        check_lines(hypotheses, references)
        values = self.values(hypotheses, list(zip(*references, strict=True)))
        return np.stack([np.array(values, np.float64), np.ones(len(values))], 1)

    def signature(self, references: int) -> str:
        """Describe the number of references."""
        return describe_references(references)

    def values(self, outputs: Sequence[str], references: Sequence[tuple[str, ...]]) -> list[float]:
        """Return the value (0 to 1) of each output. references: the correct outputs of each example."""
        raise NotImplementedError

    def corpus(self, sums: Statistics) -> NDArray[np.float64]:
        """Return the mean (…), 0 to 100. sums: (…, 2)."""
        return 100 * sums[..., 0] / sums[..., 1]


class Accuracy(FractionMetric):
    """Fraction of outputs that equal the label, apart from blanks at both ends."""

    key, name, better = "accuracy", "accuracy", "higher"

    def values(self, outputs: Sequence[str], references: Sequence[tuple[str, ...]]) -> list[float]:
        """Return 1 for each output that is one of the correct labels, otherwise 0."""
        return [
            float(output.strip() in {label.strip() for label in labels})
            for output, labels in zip(outputs, references, strict=True)
        ]


class OtherOutputs(FractionMetric):
    """Fraction of outputs that are not a label of any example of the test set."""

    key, name, better = "other_outputs", "outputs that are not a label", "lower"

    def signature(self, references: int) -> str:
        """Name the labels with which outputs are compared."""
        return "labels of the test set"

    def values(self, outputs: Sequence[str], references: Sequence[tuple[str, ...]]) -> list[float]:
        """Return 1 for each output that is not a label, otherwise 0."""
        labels = {label.strip() for each in references for label in each}
        return [float(output.strip() not in labels) for output in outputs]


class ExactMatch(FractionMetric):
    """Fraction of outputs that equal a correct answer after SQuAD's normalisation."""

    key, name, better = "exact_match", "exact match", "higher"

    def values(self, outputs: Sequence[str], references: Sequence[tuple[str, ...]]) -> list[float]:
        """Return 1 for each output that equals a correct answer, otherwise 0."""
        return [exact_match(output, answers) for output, answers in zip(outputs, references, strict=True)]


class AnswerF1(FractionMetric):
    """Mean F1 between the words of an output and of the correct answer with the highest F1, as in SQuAD."""

    key, name, better = "answer_f1", "F1 of words", "higher"

    def values(self, outputs: Sequence[str], references: Sequence[tuple[str, ...]]) -> list[float]:
        """Return the F1 (0 to 1) of each output."""
        return [answer_f1(output, answers) for output, answers in zip(outputs, references, strict=True)]
