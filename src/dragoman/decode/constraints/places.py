"""How wide a beam is that constraints are met in."""

from collections.abc import Sequence

from dragoman.decode.constraints.constraint import Constraint, size

_MOST_MORE = 32
"""Places at most beside those that were asked for: with longer phrases, banks that are behind may get none."""


def beam_places(beam: int, constraints: Sequence[Constraint]) -> int:
    """Hypotheses kept of a sentence: one more for each token of the phrases, so that each bank has a place."""
    return beam + min(sum(map(size, constraints)), _MOST_MORE)
