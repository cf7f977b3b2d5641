"""`Choice`: reorders a text's hypotheses after the search or sampling."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from dragoman.inference.translation.result import Translation


class Choice(Protocol):
    """Orders complete hypotheses by criteria that cannot be computed during a search."""

    def choose(self, sources: Sequence[str], found: Sequence[list[Translation]]) -> list[list[Translation]]:
        """Return all hypotheses of each text, best first, with the score that orders them.

        Hypotheses with equal scores keep their order. The result for a text does not depend on other texts.
        """
        ...

    def settings(self) -> dict[str, Any]:
        """Return all settings that determine the order, as JSON values."""
        ...


def ordered(hypotheses: Sequence[Translation], scores: Sequence[float]) -> list[Translation]:
    """Return the hypotheses with these scores, in descending order of score."""
    order = sorted(range(len(hypotheses)), key=lambda row: -scores[row])
    return [replace(hypotheses[row], score=float(scores[row])) for row in order]
