"""The hypotheses of a beam search: live, ranked, selected and ended ones, and the history of their tokens."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.decode.rules.rule import RuleStates, Step
from dragoman.models.interface import State


@dataclass(frozen=True)
class LiveHypotheses:
    """The live hypotheses: R = B · K, in K slots for each of the B sentences that are still searched, best first.

    sentences: (B,) int64, indices of the prompts. state: the decoder's, before it reads tokens (R, 1). totals: (B, K)
    float32, by which hypotheses are compared: summed log-probabilities plus the additions of rules; −∞ in an empty
    slot. log_probabilities: (B, K), the model's summed log-probabilities alone; the same tensor as totals if no rule
    adds anything. links: (R,) int64, their numbers in the history. rule_states: the rules with their states.
    """

    sentences: NDArray[np.int64]
    state: State
    tokens: Tensor
    totals: Tensor
    log_probabilities: Tensor
    links: Tensor
    rule_states: RuleStates


class Continuations(NamedTuple):
    """C tokens that may follow each of R hypotheses, by ascending id, each (R, C).

    added: their contributions to `LiveHypotheses.totals`, −∞ for a forbidden token; log_probabilities: those to
    `LiveHypotheses.log_probabilities`, the same tensor as `added` if no rule adds anything.
    """

    tokens: Tensor
    added: Tensor
    log_probabilities: Tensor

    def totals(self, live: LiveHypotheses) -> Tensor:
        """(B, K · C): the totals of all continuations of each sentence, ordered by slot, then by token."""
        return (live.totals.view(-1, 1) + self.added).view(len(live.sentences), -1)


class RankedContinuations(NamedTuple):
    """The N best continuations of each sentence, best first, each (B, N).

    totals, log_probabilities: as in `LiveHypotheses`; parents: slots of the continued hypotheses; tokens: the tokens
    that continue them.
    """

    totals: Tensor
    log_probabilities: Tensor
    parents: Tensor
    tokens: Tensor

    @staticmethod
    def of(live: LiveHypotheses, continuations: Continuations, totals: Tensor, order: Tensor) -> "RankedContinuations":
        """order: (B, N), positions of the ranked continuations among the K · C of their sentence; totals: (B, N)."""
        sentences, count = len(live.sentences), continuations.tokens.size(1)
        log_probabilities = totals
        if continuations.log_probabilities is not continuations.added:
            sums = live.log_probabilities.view(-1, 1) + continuations.log_probabilities  # (B·K, C)
            log_probabilities = sums.view(sentences, -1).gather(1, order)  # (B, N)
        tokens = continuations.tokens.view(sentences, -1).gather(1, order)  # (B, N)
        return RankedContinuations(totals, log_probabilities, order // count, tokens)


class Selection(NamedTuple):
    """The ranked continuations that finish, and those that live on.

    finished: (B, M), totals of the first M ranked continuations, −∞ for those that do not finish. The other fields,
    each (B, K), describe the hypotheses that live on, best first: rows, indices of the continued hypotheses among the R
    before the step; tokens, the tokens that continue them; totals (−∞ in empty slots) and log_probabilities, as in
    `LiveHypotheses`.
    """

    finished: Tensor
    rows: Tensor
    tokens: Tensor
    totals: Tensor
    log_probabilities: Tensor

    @staticmethod
    def of(
        live: LiveHypotheses, ranked: RankedContinuations, finished: Tensor, order: Tensor, totals: Tensor
    ) -> "Selection":
        """order: (B, K), ranks of the continuations that live on; totals: (B, K), their totals."""
        log_probabilities = totals
        if ranked.log_probabilities is not ranked.totals:
            log_probabilities = ranked.log_probabilities.gather(1, order)  # (B, K)
        first = torch.arange(len(live.sentences), device=order.device).unsqueeze(1) * live.totals.size(1)  # (B, 1)
        rows = first + ranked.parents.gather(1, order)  # (B, K)
        return Selection(finished, rows, ranked.tokens.gather(1, order), totals, log_probabilities)


class LinkedHypothesis(NamedTuple):
    """An ended hypothesis whose tokens are still in the history.

    steps: number of its tokens, counted from the prompt; link: number of its last link.
    """

    log_probability: float
    score: float
    finished: bool
    steps: int
    link: int


@dataclass
class NBestList:
    """The `wanted` best ended hypotheses of one sentence, best first; ties are ordered by time of ending.

    count: number of finished hypotheses, including those that are no longer in the list.
    """

    wanted: int
    best: list[LinkedHypothesis] = field(default_factory=list)
    count: int = 0

    def add(self, hypothesis: LinkedHypothesis) -> None:
        """Add a finished hypothesis."""
        self.count += 1
        self.best = sorted([*self.best, hypothesis], key=lambda each: -each.score)[: self.wanted]

    def fill(self, unfinished: list[LinkedHypothesis]) -> None:
        """Append the best of these unfinished hypotheses, in any order, until the list is full."""
        ordered = sorted(unfinished, key=lambda each: -each.score)
        self.best.extend(ordered[: self.wanted - len(self.best)])

    def threshold(self) -> float:
        """The score that a later hypothesis has to exceed to enter the list."""
        return self.best[-1].score if len(self.best) == self.wanted else -np.inf


class FoundHypothesis(NamedTuple):
    """A hypothesis as a search returns it.

    tokens: continuation of its prompt, without the end of sentence. totals: log-probabilities of the hypothesis after
    each of these tokens; empty unless the search keeps them.
    """

    end: LinkedHypothesis
    tokens: tuple[int, ...]
    totals: tuple[float, ...]


class StepTrace(NamedTuple):
    """One step of a search, for observers.

    before: the hypotheses before the step; live: the same hypotheses after they have read their tokens; finished:
    (B, M) bool, True for ranked continuations that finished; stays: (B',) int64, the positions of the sentences whose
    search continues; full: (B,) bool, whether the maximum length is reached.
    """

    before: LiveHypotheses
    live: LiveHypotheses
    step: Step
    ranked: RankedContinuations
    chosen: Selection
    finished: NDArray[np.bool]
    stays: NDArray[np.int64]
    full: NDArray[np.bool]


class History:
    """One link per hypothesis and step: its token, and the hypothesis of the previous step that it continues.

    The cost of a step does not depend on the length of the outputs; only the sequences to return are assembled, at the
    end. The hypotheses of a step are numbered in the order in which they are passed to `extend`.
    """

    def __init__(self) -> None:
        self._links: list[Tensor] = []
        self._totals: list[Tensor] = []

    def extend(self, parents: Tensor, tokens: Tensor, totals: Tensor | None = None) -> None:
        """Add a step. parents: (R,) int64, numbers of hypotheses of the previous step; tokens: (R,) int64.

        totals: (R,) float32, the sums that `totals` returns; given in every step or in none.
        """
        self._links.append(torch.stack((parents, tokens)))
        if totals is not None:
            self._totals.append(totals)

    def sequences(self, ends: Sequence[tuple[int, int]]) -> list[tuple[int, ...]]:
        """The tokens of each of `ends`, a pair of a number of steps and the number of a hypothesis of the last step."""
        written = np.zeros((len(ends), _longest(ends)), np.int64)  # (N, T)
        for step, rows, _, tokens in self._steps(ends):
            written[rows, step] = tokens
        return [tuple(row[:length]) for row, (length, _) in zip(written.tolist(), ends, strict=True)]

    def totals(self, ends: Sequence[tuple[int, int]]) -> list[tuple[float, ...]]:
        """The totals of each of `ends` after each of its steps."""
        found = np.zeros((len(ends), _longest(ends)), np.float64)  # (N, T)
        totals = torch.cat(self._totals).cpu().numpy() if self._totals else np.zeros(0, np.float32)
        for step, rows, positions, _ in self._steps(ends):
            found[rows, step] = totals[positions]
        return [tuple(row[:length]) for row, (length, _) in zip(found.tolist(), ends, strict=True)]

    def _steps(
        self, ends: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        """Yield from the last step to the first: the step, the ends that reach it, their positions among all links, and
        their tokens.
        """
        lengths = np.array([steps for steps, _ in ends], np.int64)
        numbers = np.array([number for _, number in ends], np.int64)
        sizes = np.cumsum([0, *(links.size(1) for links in self._links)])
        links = torch.cat(self._links, 1).cpu().numpy() if self._links else np.zeros((2, 0), np.int64)
        for step in reversed(range(_longest(ends))):
            rows = np.flatnonzero(lengths > step)
            positions = sizes[step] + numbers[rows]
            numbers[rows], tokens = links[:, positions]
            yield step, rows, positions, tokens


def _longest(ends: Sequence[tuple[int, int]]) -> int:
    return max((steps for steps, _ in ends), default=0)
