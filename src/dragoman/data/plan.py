"""The batch plan: a pure function of the sentences' lengths, the seed and the epoch."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dragoman.base.config import Config


class BatchConfig(Config):
    """How large a batch is."""

    tokens: int = Field(
        default=4096,
        ge=1,
        description="Token budget of a batch: its sentences times the longest source or target among them, padding and "
        "end symbol counted. A single longer pair makes a batch of its own. Source of the default: the tensor2tensor "
        "and fairseq recipes for one device.",
    )
    sentences: int | None = Field(default=None, ge=1, description="Most sentence pairs in a batch; null: no limit.")


class PaddingWaste(NamedTuple):
    """The share of padding among the symbols of an epoch, between 0 and 1, a side."""

    source: float
    target: float


@dataclass(frozen=True)
class BatchPlan:
    """batches: corpus rows (int64) of each batch, in training order; padding_waste: what the padding costs."""

    batches: list[NDArray[np.int64]]
    padding_waste: PaddingWaste

    def __len__(self) -> int:
        return len(self.batches)


def plan_epoch(lengths: NDArray[np.int32], config: BatchConfig, seed: int, epoch: int) -> BatchPlan:
    """Every row of the corpus in exactly one batch; the same arguments always give the same plan.

    lengths: (N, 2), tokens of source and target without special symbols (each side costs one more for its end symbol).
    Rows are sorted by target and then source length, shuffled among equals, cut where the budget is full, and the
    batches shuffled. Source lengths run up and down in turn, so that neighbours are alike where the target length
    changes.
    """
    if len(lengths) == 0:
        return BatchPlan([], PaddingWaste(0.0, 0.0))
    rng = np.random.default_rng((seed, epoch))
    padded = lengths.astype(np.int64) + 1
    direction = np.where(padded[:, 1] % 2 == 0, 1, -1)
    order = np.lexsort((rng.permutation(len(lengths)), direction * padded[:, 0], padded[:, 1]))
    cuts = _cuts(padded[order].max(axis=1).tolist(), config)
    batches = np.split(order, cuts)
    waste = _padding_waste(padded, batches)
    return BatchPlan([batches[place] for place in rng.permutation(len(batches))], waste)


def _cuts(widths: list[int], config: BatchConfig) -> list[int]:
    """Where a new batch begins, the first one excepted. widths: the longer side of each row, in batch order."""
    most = config.sentences or len(widths)
    cuts: list[int] = []
    start = widest = 0
    for place, width in enumerate(widths):
        widest = max(widest, width)
        count = place - start + 1
        if count > 1 and (widest * count > config.tokens or count > most):
            cuts.append(place)
            start, widest = place, width
    return cuts


def _padding_waste(padded: NDArray[np.int64], batches: list[NDArray[np.int64]]) -> PaddingWaste:
    symbols = sum(len(batch) * padded[batch].max(axis=0) for batch in batches)
    source, target = (1 - padded.sum(axis=0) / symbols).tolist()
    return PaddingWaste(source, target)
