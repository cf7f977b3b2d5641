"""The rows of labelled examples: inputs of the model with their targets, and batches of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dragoman.data.batches.labelled import NO_LABEL, LabelledBatch, collate_labelled
from dragoman.inference.prediction.heads.inputs import ModelInput

Row = tuple[ModelInput, Any]
"""An input of the model, with its target."""


def collate_rows(rows: Sequence[Row], numbers: Sequence[int]) -> LabelledBatch:
    """Return a batch of the rows with these numbers."""
    chosen = [rows[number] for number in numbers]
    labels = [_token_labels(each, target) if isinstance(target, list) else target for each, target in chosen]
    counts = [count_labels(target) - count_labels(target, NO_LABEL) for _, target in chosen]
    cut = [(each.first > 0, each.continued) for each, _ in chosen]
    return collate_labelled([each.tokens for each, _ in chosen], labels, counts, numbers, cut)


def count_labels(target: Any, label: int | None = None) -> int:
    """Return the number of labels of a row, or of those that equal `label`."""
    labels = target if isinstance(target, list | np.ndarray) else [target]
    return len(labels) if label is None else int(np.count_nonzero(np.equal(labels, label)))


def _token_labels(each: ModelInput, target: Sequence[int]) -> list[int]:
    """Return the label of each token: `target` at the places of the input, NO_LABEL elsewhere."""
    labels = [NO_LABEL] * len(each.ids)
    for place, label in zip(each.places, target, strict=True):
        labels[place] = label
    return labels
