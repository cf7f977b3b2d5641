"""How the batches of several tasks are mixed: from every task in each update, or drawn in proportion to the tasks."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dragoman.base.settings.config import Config


class _Mixing(Config):
    """Base class of the ways to mix batches.

    together: whether each update has the same number of batches of every task. needs_epochs: whether the proportions
    depend on the number of epochs of the run.
    """

    together: ClassVar[bool] = False
    needs_epochs: ClassVar[bool] = False

    def counts(self, batches: Sequence[int], epoch: int, epochs: int) -> list[int]:
        """Return the number of batches of each task in an epoch.

        batches: number of batches of one pass over each task. epoch: number of the epoch, from 0. epochs: number of
        epochs of the run; 1 if it is unknown.
        """
        raise NotImplementedError

    def order(self, counts: Sequence[int], seed: int, epoch: int) -> NDArray[np.int64]:
        """Return the index of the task of each batch of an epoch. The result depends only on the arguments."""
        tasks = np.repeat(np.arange(len(counts)), counts)
        return np.random.default_rng((seed, epoch, len(counts))).permutation(tasks)


class TogetherConfig(_Mixing):
    """Every update has train.accumulate batches of each task, and minimises Σ λ_t L_t.

    An epoch is one pass over the task with the most batches; the other tasks are repeated.
    """

    together: ClassVar[bool] = True
    kind: Literal["together"] = "together"

    def counts(self, batches: Sequence[int], epoch: int, epochs: int) -> list[int]:
        """See `_Mixing.counts`."""
        return [max(batches)] * len(batches)

    def order(self, counts: Sequence[int], seed: int, epoch: int) -> NDArray[np.int64]:
        """Return the tasks in rotation."""
        return np.tile(np.arange(len(counts)), counts[0])


def _proportional(batches: Sequence[int], exponent: float) -> list[int]:
    """Return numbers of batches in proportion to n_t^exponent, with the same sum as `batches` except for rounding."""
    powers = np.array(batches, np.float64) ** exponent
    expected = sum(batches) * powers / powers.sum()
    return [max(1, round(count)) for count in expected.tolist()]


class ProportionalConfig(_Mixing):
    """Each batch is of one task, drawn in proportion to n_t^(1/T) (Raffel et al. 2020, section 3.5.2).

    n_t is the number of batches of one pass over task t. An epoch has Σ n_t batches, and the exact number of each task.
    """

    kind: Literal["proportional"] = "proportional"
    temperature: float = Field(
        1.0,
        gt=0,
        description="T. 1: an epoch is one pass over every task. Larger values make the proportions of the tasks "
        "more equal.",
    )

    def counts(self, batches: Sequence[int], epoch: int, epochs: int) -> list[int]:
        """See `_Mixing.counts`."""
        return _proportional(batches, 1 / self.temperature)


class AnnealedConfig(_Mixing):
    """As `proportional`, with n_t^α: α falls from 1 in the first epoch to `end` in the last (Stickland & Murray 2019).

    It requires train.max_epochs.
    """

    needs_epochs: ClassVar[bool] = True
    kind: Literal["annealed"] = "annealed"
    end: float = Field(0.2, ge=0, le=1, description="α in the last epoch (paper: 0.2). 0: equal proportions.")

    def counts(self, batches: Sequence[int], epoch: int, epochs: int) -> list[int]:
        """See `_Mixing.counts`."""
        progress = min(1.0, epoch / max(1, epochs - 1))
        return _proportional(batches, 1 - (1 - self.end) * progress)


MixingConfig = Annotated[TogetherConfig | ProportionalConfig | AnnealedConfig, Field(discriminator="kind")]
