"""Estimation of linear models of n-grams for classes and numbers, by a convex solver instead of the training loop."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.base.log import warn
from dragoman.models.families.ngrams import NgramVectors
from dragoman.models.heads.texts import RegressionHead, TextHead
from dragoman.models.heads.union import HeadConfig
from dragoman.models.kinds.encoder_only import EncoderOnly, EncoderOnlyConfig
from dragoman.tasks.labelled.config import LabelledRun
from dragoman.tasks.labelled.rows import Row, collate_rows

_BATCH = 256
_ITERATIONS = 60
_MOST_NGRAMS = 20_000_000
"""Maximum number of n-grams, for which the solver alone needs 1.0 GB with two classes."""

_FOLD = 5
"""A fifth of the examples is left out of a first model, which determines the scale of the logits."""

_VOCABULARY = 1_000
"""Default size of the vocabulary. With it, trigrams of pieces are words and parts of words (EXPERIMENTS.md)."""

_SCALES = torch.arange(0.5, 10.5, 0.25)


def vocabulary_of(run: LabelledRun) -> Any:
    """Return the settings `text.subword` of a run, with a small default size for a linear model."""
    subword = run.text.subword
    small = run.model.is_linear and getattr(subword, "size", _VOCABULARY) is None
    return subword.model_copy(update={"size": _VOCABULARY}) if small else subword


def with_head(model: EncoderOnlyConfig, head: HeadConfig) -> EncoderOnlyConfig:
    """Return the settings with a head; the vectors of a linear model have a component for each class."""
    classes = getattr(head, "classes", 1)
    width = max(model.width, classes) if model.is_linear else model.width
    return model.model_copy(update={"head": head, "width": width})


@dataclass(frozen=True)
class _Features:
    """A sparse matrix (N, F) by rows: the columns and values of row i start at `starts[i]`."""

    columns: Tensor
    values: Tensor
    starts: Tensor
    width: int

    @classmethod
    def of(cls, rows: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> Self:
        """Return the matrix of elements (E,) in any order; equal places are added by products."""
        order = rows.argsort(stable=True)
        starts = torch.bincount(rows, minlength=shape[0]).cumsum(0)
        return cls(columns[order], values[order], functional.pad(starts[:-1], (1, 0)), shape[1])

    def __matmul__(self, weights: Tensor) -> Tensor:
        """Return the product with weights (F, K). `embedding_bag` is 20 times as fast as PyTorch's sparse products."""
        return functional.embedding_bag(self.columns, weights, self.starts, mode="sum", per_sample_weights=self.values)

    @property
    def rows(self) -> Tensor:
        """The row of each element (E,)."""
        ends = functional.pad(self.starts[1:], (0, 1), value=len(self.columns))
        return torch.arange(len(self.starts)).repeat_interleave(ends - self.starts)

    def transposed(self) -> Self:
        """Return the matrix (F, N)."""
        return self.of(self.columns, self.rows, self.values, (self.width, len(self.starts)))

    def select(self, chosen: Tensor) -> Self:
        """Return the rows for which `chosen` (N,) bool is set."""
        kept = chosen[self.rows]
        lines = (chosen.cumsum(0) - 1)[self.rows[kept]]
        return self.of(lines, self.columns[kept], self.values[kept], (int(chosen.sum()), self.width))


@torch.no_grad()
def estimate_ngrams(model: EncoderOnly, rows: Sequence[Row], class_weights: Tensor | None = None) -> None:
    """Estimate the vectors of n-grams and the head of a model with an `NgramEncoder` from training rows.

    Classes: one linear support vector machine with squared errors for each class against the others (Fan et al. 2008,
    LIBLINEAR), whose margins, multiplied by a common factor, become logits. Numbers: ridge regression. Both have the
    squared norm ½‖W‖² as penalty. class_weights: (C,) factors of the errors of the examples of each class; None: 1.
    """
    table: NgramVectors = model.encoder.tokens
    rows = _affordable(rows, table.order)
    head = cast("TextHead", model.head)
    used, features = _features(table, rows)
    if isinstance(head, RegressionHead):
        values = torch.tensor([target for _, target in rows], dtype=torch.float32)
        targets = ((values - head.offset) / head.scale).unsqueeze(1)
        solution = _solve(features, targets, torch.ones(len(rows)), margins=False)
    else:
        classes = head.output.out_features
        labels = torch.tensor([target for _, target in rows])
        signs = 2.0 * functional.one_hot(labels, classes) - 1
        errors = torch.ones(len(rows)) if class_weights is None else class_weights[labels]
        solution = _solve(features, signs, errors, margins=True)
        known = torch.arange(len(rows)) % _FOLD != 0
        if known.any():
            part = _solve(features.select(known), signs[known], errors[known], margins=True)
            solution *= _factor(features.select(~known) @ part, labels[~known])
    table.vectors.weight[used, : solution.size(1)] = solution[:-1]
    head.output.weight.copy_(torch.eye(head.output.out_features, head.output.in_features))
    head.output.bias.copy_(solution[-1])


def _affordable(rows: Sequence[Row], order: int) -> Sequence[Row]:
    """Return the rows, or evenly spaced ones if there are more than `_MOST_NGRAMS` n-grams, which is reported."""
    count = order * sum(len(each.ids) for each, _ in rows)
    if count <= _MOST_NGRAMS:
        return rows
    chosen = rows[:: -(-count // _MOST_NGRAMS)]
    warn(
        f"the linear model is estimated from {len(chosen):,} of the {len(rows):,} training examples, which have "
        f"{count:,} n-grams, because the solver keeps all of them in memory. To train on all examples, choose another "
        "model.preset"
    )
    return chosen


def _features(table: NgramVectors, rows: Sequence[Row]) -> tuple[Tensor, _Features]:
    """Set the inverse document frequencies, and return the buckets (F,) that occur and the features (N, F + 1).

    The last feature is 1, for the intercept, which is penalised like the weights.
    """
    found = []
    for start in range(0, len(rows), _BATCH):
        batch = collate_rows(rows, range(start, min(start + _BATCH, len(rows))))
        found.append(table.occurrences(batch.tokens, batch.mask))
    frequency = torch.zeros(table.buckets + 1)
    for buckets, _ in found:
        ordered = buckets.sort(1).values
        is_first = functional.pad(ordered[:, 1:] != ordered[:, :-1], (1, 0), value=True)
        frequency += torch.bincount(ordered[is_first], minlength=table.buckets + 1)
    table.idf.copy_(((1 + len(rows)) / (1 + frequency[:-1])).log() + 1)
    used = frequency[:-1].nonzero().squeeze(1)
    numbers = torch.zeros(table.buckets + 1, dtype=torch.int64)
    numbers[used] = torch.arange(len(used))
    lines, columns, values = [torch.arange(len(rows))], [torch.full((len(rows),), len(used))], [torch.ones(len(rows))]
    for number, (buckets, counts) in enumerate(found):
        present = counts > 0
        lines.append((torch.arange(len(buckets)) + number * _BATCH).unsqueeze(1).expand_as(buckets)[present])
        columns.append(numbers[buckets[present]])
        values.append(table.weights(buckets, counts)[present])
    return used, _Features.of(torch.cat(lines), torch.cat(columns), torch.cat(values), (len(rows), len(used) + 1))


def _solve(features: _Features, targets: Tensor, errors: Tensor, *, margins: bool) -> Tensor:
    """Return the weights W (F, K) that minimise ½‖W‖² + Σ_i c_i Σ_k e_ik².

    features: (N, F). targets: (N, K). errors: (N,) the factors c. margins: whether e is the distance from the margin,
    max(0, 1 − t_ik x_i·w_k) for targets t of ±1; otherwise it is t_ik − x_i·w_k.
    """
    weights = torch.zeros(features.width, targets.size(1), requires_grad=True)
    transposed, factors = features.transposed(), errors.unsqueeze(1)
    solver = torch.optim.LBFGS(
        [weights], max_iter=_ITERATIONS, history_size=5, tolerance_grad=1e-4, line_search_fn="strong_wolfe"
    )

    def evaluate() -> float:
        outputs = features @ weights.detach()
        distances = targets * (1 - targets * outputs).clamp_min(0) if margins else targets - outputs
        weights.grad = weights.detach() - 2 * (transposed @ (factors * distances))
        return float(weights.detach().square().sum() / 2 + (factors * distances.square()).sum())

    solver.step(evaluate)  # type: ignore[no-untyped-call]
    return weights.detach()


def _factor(margins: Tensor, labels: Tensor) -> float:
    """Return the factor of margins (N, C) for which their softmax has the lowest cross-entropy for the labels (N,)."""
    losses = [float(functional.cross_entropy(scale * margins, labels)) for scale in _SCALES]
    return float(_SCALES[min(range(len(losses)), key=losses.__getitem__)])
