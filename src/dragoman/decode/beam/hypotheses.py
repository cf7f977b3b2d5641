"""Data structures for the hypotheses of a beam search: live, ranked, selected and ended, and their token history."""

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
    """The R = B · K live hypotheses, best first, in K slots for each of the B sentences whose search has not ended.

    sentences: (B,) int64, indices of the prompts. state: the decoder state before the tokens. tokens: (R, 1) int64, the
    last token of each hypothesis. totals: (B, K) float32, summed log-probabilities plus the additions of rules, by
    which hypotheses are compared; −∞ in an empty slot. log_probabilities: (B, K), the model's summed log-probabilities
    alone; the same tensor as `totals` without additions. links: (R,) int64, the numbers of the hypotheses in the
    history. rule_states: the rules with their states.
    """

    sentences: NDArray[np.int64]
    state: State
    tokens: Tensor
    totals: Tensor
    log_probabilities: Tensor
    links: Tensor
    rule_states: RuleStates


class Continuations(NamedTuple):
    """C tokens that may follow each of R hypotheses, sorted by id. All fields are (R, C).

    added: the contribution of each token to `LiveHypotheses.totals`, −∞ for a forbidden token. log_probabilities: the
    contribution to `LiveHypotheses.log_probabilities`, the same tensor as `added` without additions by rules.
    """

    tokens: Tensor
    added: Tensor
    log_probabilities: Tensor

    def totals(self, live: LiveHypotheses) -> Tensor:
        """Return (B, K · C), the totals of all continuations of each sentence, ordered by slot, then by token."""
        return (live.totals.view(-1, 1) + self.added).view(len(live.sentences), -1)


class RankedContinuations(NamedTuple):
    """The N best continuations of each sentence, best first. All fields are (B, N).

    totals, log_probabilities: as in `LiveHypotheses`; parents: slots of the parent hypotheses; tokens: the added
    tokens.
    """

    totals: Tensor
    log_probabilities: Tensor
    parents: Tensor
    tokens: Tensor

    @staticmethod
    def of(live: LiveHypotheses, continuations: Continuations, totals: Tensor, order: Tensor) -> "RankedContinuations":
        """Gather the ranked continuations.

        order: (B, N), their positions among the K · C continuations of the sentence; totals: (B, N), their totals.
        """
        sentences, count = len(live.sentences), continuations.tokens.size(1)
        log_probabilities = totals
        if continuations.log_probabilities is not continuations.added:
            sums = live.log_probabilities.view(-1, 1) + continuations.log_probabilities  # (B·K, C)
            log_probabilities = sums.view(sentences, -1).gather(1, order)  # (B, N)
        tokens = continuations.tokens.view(sentences, -1).gather(1, order)  # (B, N)
        return RankedContinuations(totals, log_probabilities, order // count, tokens)


class Selection(NamedTuple):
    """The finished hypotheses and the live hypotheses that a step selects among the ranked continuations.

    finished: (B, M), totals of the first M ranked continuations, −∞ for those that are not finished. The other fields,
    each (B, K), describe the live hypotheses, best first. rows: indices of the parents among the R hypotheses before
    the step. tokens: the added tokens. totals (−∞ in empty slots), log_probabilities: as in `LiveHypotheses`.
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
        """Gather the selected continuations. order: (B, K), ranks of the live ones; totals: (B, K), their totals."""
        log_probabilities = totals
        if ranked.log_probabilities is not ranked.totals:
            log_probabilities = ranked.log_probabilities.gather(1, order)  # (B, K)
        first = torch.arange(len(live.sentences), device=order.device).unsqueeze(1) * live.totals.size(1)  # (B, 1)
        rows = first + ranked.parents.gather(1, order)  # (B, K)
        return Selection(finished, rows, ranked.tokens.gather(1, order), totals, log_probabilities)


class LinkedHypothesis(NamedTuple):
    """An ended hypothesis whose tokens are stored in the history.

    steps: number of tokens after the prompt; link: number of the last token in the history.
    """

    log_probability: float
    score: float
    finished: bool
    steps: int
    link: int


@dataclass
class NBestList:
    """The best ended hypotheses of one sentence, at most `size`, best first. Of equal scores, the earlier comes first.

    count: number of finished hypotheses, including those that better ones have displaced.
    """

    size: int
    best: list[LinkedHypothesis] = field(default_factory=list)
    count: int = 0

    def add(self, hypothesis: LinkedHypothesis) -> None:
        """Add a finished hypothesis."""
        self.count += 1
        self.best = sorted([*self.best, hypothesis], key=lambda each: -each.score)[: self.size]

    def fill(self, unfinished: list[LinkedHypothesis]) -> None:
        """Append the best of the unfinished hypotheses, which need not be sorted, until the list is full."""
        ordered = sorted(unfinished, key=lambda each: -each.score)
        self.best.extend(ordered[: self.size - len(self.best)])

    def threshold(self) -> float:
        """Return the score that a later hypothesis must exceed to enter the list."""
        return self.best[-1].score if len(self.best) == self.size else -np.inf


class CompleteHypothesis(NamedTuple):
    """A hypothesis as returned by a search.

    tokens: the tokens after the prompt, without the end of sentence. totals: summed log-probabilities up to each of
    these tokens; empty unless the search keeps totals.
    """

    end: LinkedHypothesis
    tokens: tuple[int, ...]
    totals: tuple[float, ...]


class StepTrace(NamedTuple):
    """One step of a search, as passed to observers.

    before: the hypotheses before the step; live: the same hypotheses with the states after the step; finished: (B, M)
    bool, True for ranked continuations that are finished; stays: (B',) int64, the positions of the sentences whose
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
    """One link per hypothesis and step: its last token and the number of its parent in the previous step.

    The cost of a step does not depend on the length of the outputs, because only returned sequences are assembled, at
    the end of the search. The hypotheses of a step are numbered in the order in which they are passed to `extend`.
    """

    def __init__(self) -> None:
        self._links: list[Tensor] = []
        self._totals: list[Tensor] = []

    def extend(self, parents: Tensor, tokens: Tensor, totals: Tensor | None = None) -> None:
        """Add a step. parents: (R,) int64, numbers of hypotheses of the previous step; tokens: (R,) int64.

        totals: (R,) float32, the summed log-probabilities; passed either in every step or never.
        """
        self._links.append(torch.stack((parents, tokens)))
        if totals is not None:
            self._totals.append(totals)

    def sequences(self, ends: Sequence[tuple[int, int]]) -> list[tuple[int, ...]]:
        """Return the tokens of each hypothesis in `ends`, pairs of number of steps and number in the last step."""
        written = np.zeros((len(ends), _longest(ends)), np.int64)  # (N, T)
        for step, rows, _, tokens in self._steps(ends):
            written[rows, step] = tokens
        return [tuple(row[:length]) for row, (length, _) in zip(written.tolist(), ends, strict=True)]

    def totals(self, ends: Sequence[tuple[int, int]]) -> list[tuple[float, ...]]:
        """Return the totals of each hypothesis in `ends` after each of its steps; `ends` as in `sequences`."""
        result = np.zeros((len(ends), _longest(ends)), np.float64)  # (N, T)
        totals = torch.cat(self._totals).cpu().numpy() if self._totals else np.zeros(0, np.float32)
        for step, rows, positions, _ in self._steps(ends):
            result[rows, step] = totals[positions]
        return [tuple(row[:length]) for row, (length, _) in zip(result.tolist(), ends, strict=True)]

    def _steps(
        self, ends: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        """Yield, from the last step to the first: the step, the indices of the hypotheses in `ends` that include it,
        their positions among all links, and their tokens.
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
