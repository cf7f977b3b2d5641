"""Beams of different sizes in one batch."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.decode.rules.rule import BeamSizes, Sizes, Step
from dragoman.models.interface import TensorTree


def candidates(beam: int | NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of continuations to consider: 2 · beam, so that at least `beam` do not end; 1 in greedy search."""
    return np.where(np.asarray(beam) > 1, 2 * np.asarray(beam), 1)


class FixedBeamSizes(BeamSizes):
    """Gives each sentence its own beam size; its result is the same as in a batch where all have this size."""

    def __init__(self, sizes: Sequence[int]) -> None:
        """sizes: beam size of each sentence."""
        self._sizes = np.array(sizes, np.int64)

    def sizes(self, step: Step, ended: NDArray[np.int64], state: TensorTree) -> Sizes:
        """The fixed sizes, which are the same in every step."""
        sizes = self._sizes[step.sentences]
        return Sizes(candidates(sizes), sizes)


class ShrinkingBeam(BeamSizes):
    """Removes a slot from a sentence's beam for each finished hypothesis; only one continuation per slot is considered.

    Deck 004, algorithm BEAMDECODE, after Jurafsky and Martin 2023, section 10.4. When no slot is left, the search of
    the sentence ends with as many finished hypotheses as its beam had slots.
    """

    def __init__(self, sizes: Sequence[int], shrinks: Sequence[bool]) -> None:
        """sizes: initial beam size of each sentence; shrinks: whether the beam of each sentence shrinks."""
        self._sizes, self._shrinks = np.array(sizes, np.int64), np.array(shrinks, np.bool_)

    def sizes(self, step: Step, ended: NDArray[np.int64], state: TensorTree) -> Sizes:
        """The remaining slots of beams that shrink, and the fixed sizes of the others."""
        sizes, shrinks = self._sizes[step.sentences], self._shrinks[step.sentences]
        left = np.where(shrinks, np.maximum(sizes - ended, 0), sizes)
        return Sizes(np.where(shrinks, left, candidates(sizes)), left)
