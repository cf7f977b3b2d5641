"""Rules that set the beam size of each sentence in a batch."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.decode.rules.rule import BeamSizes, Sizes, Step
from dragoman.models.interface import TensorTree


def candidates(beam: int | NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of continuations to consider: 2 · beam, of which at least `beam` do not end with EOS.

    Greedy search (a beam of 1) considers 1 continuation.
    """
    return np.where(np.asarray(beam) > 1, 2 * np.asarray(beam), 1)


class FixedBeamSizes(BeamSizes):
    """Sets a separate beam size for each sentence. The results do not depend on the other beam sizes in the batch."""

    def __init__(self, sizes: Sequence[int]) -> None:
        """sizes: beam size of each sentence."""
        self._sizes = np.array(sizes, np.int64)

    def sizes(self, step: Step, ended: NDArray[np.int64], state: TensorTree) -> Sizes:
        """Return the fixed sizes."""
        sizes = self._sizes[step.sentences]
        return Sizes(candidates(sizes), sizes)


class ShrinkingBeam(BeamSizes):
    """Removes a slot from a sentence's beam for each finished hypothesis, and considers one continuation per slot.

    The algorithm is BEAMDECODE in deck 004, after Jurafsky and Martin 2023, section 10.4. The search of a sentence ends
    when no slot is left, with one finished hypothesis for each of the initial slots.
    """

    def __init__(self, sizes: Sequence[int], shrinks: Sequence[bool]) -> None:
        """sizes: initial beam size of each sentence; shrinks: for each sentence, whether its beam shrinks."""
        self._sizes, self._shrinks = np.array(sizes, np.int64), np.array(shrinks, np.bool_)

    def sizes(self, step: Step, ended: NDArray[np.int64], state: TensorTree) -> Sizes:
        """Return the number of remaining slots of shrinking beams, and the fixed sizes of the other beams."""
        sizes, shrinks = self._sizes[step.sentences], self._shrinks[step.sentences]
        left = np.where(shrinks, np.maximum(sizes - ended, 0), sizes)
        return Sizes(np.where(shrinks, left, candidates(sizes)), left)
