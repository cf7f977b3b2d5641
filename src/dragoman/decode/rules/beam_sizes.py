"""Beams of different sizes in one batch."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.decode.rules.rule import BeamSizes, Sizes, Step
from dragoman.models.interface import TensorTree


def candidates(beam: int | NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of the best continuations are considered: 2 · beam, so that enough do not end; 1 in greedy search."""
    return np.where(np.asarray(beam) > 1, 2 * np.asarray(beam), 1)


class FixedBeamSizes(BeamSizes):
    """Each sentence has its own beam size, and the same result as in a batch where all have that size."""

    def __init__(self, sizes: Sequence[int]) -> None:
        """sizes: hypotheses, one number per sentence."""
        self._sizes = np.array(sizes, np.int64)

    def sizes(self, step: Step, ended: NDArray[np.int64], state: TensorTree) -> Sizes:
        """The same in every step."""
        sizes = self._sizes[step.sentences]
        return Sizes(candidates(sizes), sizes)


class ShrinkingBeam(BeamSizes):
    """A sentence's beam loses a slot with each finished hypothesis, and considers only as many continuations as slots.

    Deck 004, algorithm BEAMDECODE, after Jurafsky and Martin 2023, section 10.4. When no slot is left the search of the
    sentence ends: it has as many finished hypotheses as its beam had slots.
    """

    def __init__(self, sizes: Sequence[int], shrinks: Sequence[bool]) -> None:
        """sizes: hypotheses, one number per sentence; shrinks: whether its beam does."""
        self._sizes, self._shrinks = np.array(sizes, np.int64), np.array(shrinks, np.bool_)

    def sizes(self, step: Step, ended: NDArray[np.int64], state: TensorTree) -> Sizes:
        """The remaining slots of beams that shrink, the fixed sizes of the others."""
        sizes, shrinks = self._sizes[step.sentences], self._shrinks[step.sentences]
        left = np.where(shrinks, np.maximum(sizes - ended, 0), sizes)
        return Sizes(np.where(shrinks, left, candidates(sizes)), left)
