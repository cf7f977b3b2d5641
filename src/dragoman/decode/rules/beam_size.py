"""Beams of several sizes in one batch."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.decode.rules.rule import BeamSizes, Sizes, Step
from dragoman.models.interface import Tree


def looked_at(beam: int | NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of the best continuations a beam looks at: twice its size, so that ends leave enough; greedily, one."""
    return np.where(np.asarray(beam) > 1, 2 * np.asarray(beam), 1)


class OwnBeamSizes(BeamSizes):
    """Each sentence has its own beam size, and finds what it would find in a batch that has all that one."""

    def __init__(self, sizes: Sequence[int]) -> None:
        """sizes: hypotheses, one number a sentence."""
        self._sizes = np.array(sizes, np.int64)

    def sizes(self, step: Step, ended: NDArray[np.int64], state: Tree) -> Sizes:
        """The same in every step."""
        sizes = self._sizes[step.sentences]
        return Sizes(looked_at(sizes), sizes)
