"""Beams of several sizes in one batch."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.decode.rules.rule import BeamSizes, Sizes, Step
from dragoman.models.interface import TensorTree


def considered(beam: int | NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of the best continuations a beam looks at: twice its size, so that ends leave enough; greedily, one."""
    return np.where(np.asarray(beam) > 1, 2 * np.asarray(beam), 1)


class FixedBeamSizes(BeamSizes):
    """Each sentence has its own beam size, and finds what it would find in a batch that has all that one."""

    def __init__(self, sizes: Sequence[int]) -> None:
        """sizes: hypotheses, one number a sentence."""
        self._sizes = np.array(sizes, np.int64)

    def sizes(self, step: Step, ended: NDArray[np.int64], state: TensorTree) -> Sizes:
        """The same in every step."""
        sizes = self._sizes[step.sentences]
        return Sizes(considered(sizes), sizes)


class ShrinkingBeam(BeamSizes):
    """A sentence's beam loses a place with each hypothesis that is complete, and looks at no more than it has places.

    Deck 004, algorithm BEAMDECODE, after Jurafsky and Martin 2023, section 10.4. When no place is left the sentence is
    done: it has as many complete hypotheses as its beam had places.
    """

    def __init__(self, sizes: Sequence[int], shrinks: Sequence[bool]) -> None:
        """sizes: hypotheses, one number a sentence; shrinks: whether its beam does."""
        self._sizes, self._shrinks = np.array(sizes, np.int64), np.array(shrinks, np.bool_)

    def sizes(self, step: Step, ended: NDArray[np.int64], state: TensorTree) -> Sizes:
        """What is left of those that shrink; the others as they are."""
        sizes, shrinks = self._sizes[step.sentences], self._shrinks[step.sentences]
        left = np.where(shrinks, np.maximum(sizes - ended, 0), sizes)
        return Sizes(np.where(shrinks, left, considered(sizes)), left)
