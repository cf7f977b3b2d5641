"""The hypotheses of a beam search, live, ranked and ended, and the history of what they have written."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.decode.rules.rule import RuleStates, Step
from dragoman.models.interface import State


class LinkedHypothesis(NamedTuple):
    """A hypothesis whose tokens are still links: where it ends in the history, after how many steps."""

    log_probability: float
    score: float
    finished: bool
    steps: int
    number: int


@dataclass
class NBestList:
    """The `wanted` best of one sentence, best first; among equal scores the first found stays first.

    count: how many have finished, those that are not kept included.
    """

    wanted: int
    best: list[LinkedHypothesis] = field(default_factory=list)
    count: int = 0

    def add(self, end: LinkedHypothesis) -> None:
        """One that has finished."""
        self.count += 1
        self.best = sorted([*self.best, end], key=lambda each: -each.score)[: self.wanted]

    def fill(self, unfinished: list[LinkedHypothesis]) -> None:
        """Put unfinished ones behind the finished, as many as are still wanted; they may come in any order."""
        ordered = sorted(unfinished, key=lambda each: -each.score)
        self.best.extend(ordered[: self.wanted - len(self.best)])

    def threshold(self) -> float:
        """A later hypothesis enters the list only with a score above this one."""
        return self.best[-1].score if len(self.best) == self.wanted else -np.inf


class History:
    """One link a hypothesis and step: its token, and which hypothesis of the step before it goes on from.

    A step costs the same however much was written before; sequences are put together at the end, and only those that
    are wanted. Hypotheses of a step are numbered as they are handed to `extend`.
    """

    def __init__(self) -> None:
        self._links: list[Tensor] = []
        self._totals: list[Tensor] = []

    def extend(self, parents: Tensor, tokens: Tensor, totals: Tensor | None = None) -> None:
        """One more step: parents (R,) int64 numbers of hypotheses of the last step, tokens (R,) int64.

        totals: (R,) float32, in every step or in none: a sum that `totals` shall give again.
        """
        self._links.append(torch.stack((parents, tokens)))
        if totals is not None:
            self._totals.append(totals)

    def sequences(self, ends: Sequence[tuple[int, int]]) -> list[tuple[int, ...]]:
        """The tokens of each of `ends`: how many steps, and which hypothesis of the last of them."""
        written = np.zeros((len(ends), _longest(ends)), np.int64)
        for step, rows, _, tokens in self._steps(ends):
            written[rows, step] = tokens
        return [tuple(row[:length]) for row, (length, _) in zip(written.tolist(), ends, strict=True)]

    def totals(self, ends: Sequence[tuple[int, int]]) -> list[tuple[float, ...]]:
        """The totals of each of `ends` after each of its steps."""
        found = np.zeros((len(ends), _longest(ends)), np.float64)
        totals = torch.cat(self._totals).cpu().numpy() if self._totals else np.zeros(0, np.float32)
        for step, rows, places, _ in self._steps(ends):
            found[rows, step] = totals[places]
        return [tuple(row[:length]) for row, (length, _) in zip(found.tolist(), ends, strict=True)]

    def _steps(
        self, ends: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        """From the last step to the first: the step, which ends have it, their places among all links, their tokens."""
        lengths = np.array([steps for steps, _ in ends], np.int64)
        numbers = np.array([number for _, number in ends], np.int64)
        sizes = np.cumsum([0, *(links.size(1) for links in self._links)])
        links = torch.cat(self._links, 1).cpu().numpy() if self._links else np.zeros((2, 0), np.int64)
        for step in reversed(range(_longest(ends))):
            rows = np.flatnonzero(lengths > step)
            places = sizes[step] + numbers[rows]
            numbers[rows], tokens = links[:, places]
            yield step, rows, places, tokens


def _longest(ends: Sequence[tuple[int, int]]) -> int:
    return max((steps for steps, _ in ends), default=0)


@dataclass(frozen=True)
class LiveHypotheses:
    """The live hypotheses: R = B · w, w places for each of the B sentences that are still searched, best first.

    sentences: (B,) int64, which of the prompts these are. state: the decoder's, before it reads tokens (R, 1). totals:
    (B, w) float32, what they are compared by, summed log-probabilities and what rules add to them; −∞ at a place that
    holds none. own: (B, w), the log-probabilities alone; the same tensor where no rule adds. numbers: (R,) int64, in
    the history. carried: the rules with their states.
    """

    sentences: NDArray[np.int64]
    state: State
    tokens: Tensor
    totals: Tensor
    own: Tensor
    numbers: Tensor
    rule_states: RuleStates


class Continuations(NamedTuple):
    """C tokens that may follow each of R hypotheses, by ascending id, each (R, C).

    values: what they add to `LiveHypotheses.totals`, −∞ where a token must not follow; own: to `LiveHypotheses.own`.
    """

    tokens: Tensor
    values: Tensor
    own: Tensor


class RankedContinuations(NamedTuple):
    """The N best continuations of each sentence, best first, each (B, N).

    totals, own: as in `LiveHypotheses`; parents: the place of the hypothesis that is continued; tokens: with what.
    """

    totals: Tensor
    own: Tensor
    parents: Tensor
    tokens: Tensor


class Selection(NamedTuple):
    """Which of the ranked finish, and which live on.

    finished: (B, M) totals of the first M ranked, −∞ where one does not finish. The others, each (B, w), are of the
    hypotheses that live on, best first, −∞ for none: rows, which of the R before each continues; tokens, with what.
    """

    finished: Tensor
    rows: Tensor
    tokens: Tensor
    totals: Tensor
    own: Tensor


class FoundHypothesis(NamedTuple):
    """A hypothesis that is returned: the tokens that its prompt was continued with, their end not among them.

    totals: log-probabilities of the hypothesis after each of these tokens; empty where they are not kept.
    """

    end: LinkedHypothesis
    tokens: tuple[int, ...]
    totals: tuple[float, ...]


class StepTrace(NamedTuple):
    """What a step has done, for whoever watches a search.

    before: the hypotheses before it; live: the same once they have read; finished: (B, M) bool, which of the ranked
    have; stays: (B',) int64, the places of the sentences that are searched on; full: (B,) bool, where the longest
    output is reached.
    """

    before: LiveHypotheses
    live: LiveHypotheses
    step: Step
    ranked: RankedContinuations
    chosen: Selection
    finished: NDArray[np.bool]
    stays: NDArray[np.int64]
    full: NDArray[np.bool]
