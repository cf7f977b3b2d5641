"""Hypotheses that a search has ended, and the best of a sentence."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np


class End(NamedTuple):
    """A hypothesis whose tokens are still links: where it ends in the history, after how many steps."""

    log_probability: float
    score: float
    finished: bool
    steps: int
    number: int


@dataclass
class Ends:
    """The `wanted` best of one sentence, best first; among equal scores the first found stays first.

    count: how many have finished, those that are not kept included.
    """

    wanted: int
    best: list[End] = field(default_factory=list)
    count: int = 0

    def add(self, end: End) -> None:
        """One that has finished."""
        self.count += 1
        self.best = sorted([*self.best, end], key=lambda each: -each.score)[: self.wanted]

    def fill(self, unfinished: list[End]) -> None:
        """Put unfinished ones behind the finished, as many as are still wanted; they may come in any order."""
        ordered = sorted(unfinished, key=lambda each: -each.score)
        self.best.extend(ordered[: self.wanted - len(self.best)])

    def threshold(self) -> float:
        """A later hypothesis enters the list only with a score above this one."""
        return self.best[-1].score if len(self.best) == self.wanted else -np.inf
