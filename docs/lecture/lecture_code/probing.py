"""Linear probes: how much of a property can be read from vectors (Alain & Bengio 2017)."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

_RIDGE = 1e-6
"""Penalty of a probe's weights, relative to the number of vectors. It makes the solution unique."""


class LinearProbe(NamedTuple):
    """A linear map from standardised vectors to one score per class, estimated by least squares.

    mean, scale: (d,) float64, of the vectors. weights: (d + 1, classes) float64; the last row is the bias.
    """

    mean: Tensor
    scale: Tensor
    weights: Tensor

    def accuracy(self, vectors: Tensor, classes: Tensor) -> float:
        """Return the fraction of vectors (N, d) whose class (N,) int64 has the highest score."""
        scores = _inputs(vectors, self.mean, self.scale) @ self.weights
        return float((scores.argmax(1) == classes).double().mean())


def fit_probe(vectors: Tensor, classes: Tensor, count: int) -> LinearProbe:
    """Fit a probe to vectors (N, d) with classes (N,) int64 from 0 to `count` − 1, by ridge regression."""
    vectors = vectors.double()
    mean, scale = vectors.mean(0), vectors.std(0).clamp_min(1e-12)
    inputs = _inputs(vectors, mean, scale)
    wanted = functional.one_hot(classes, count).double()
    penalty = _RIDGE * len(inputs) * torch.eye(inputs.size(1), dtype=torch.float64)
    return LinearProbe(mean, scale, torch.linalg.solve(inputs.t() @ inputs + penalty, inputs.t() @ wanted))


def _inputs(vectors: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    standardised = (vectors.double() - mean) / scale
    return torch.cat((standardised, standardised.new_ones(len(vectors), 1)), 1)
