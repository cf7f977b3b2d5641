"""What a search asks of its rules. A rule is a class of one of the kinds below; what it does not ask for costs nothing.

A rule may hold values of each sentence, so that sentences of one batch follow different settings, and may carry a tree
of tensors with one row a hypothesis, which the search reorders along with the hypotheses.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.decode.prompts import Prompts
from dragoman.models.interface import Output, TensorTree, tree_map


@dataclass(frozen=True)
class Step:
    """A step as rules see it: R = B · beam_size hypotheses, those of a sentence side by side, have been read further.

    sentences: (B,) int64, which of the prompts are still at work, ascending; lengths: (B,) int64, how many tokens an
    output of theirs has with the one that is chosen now, an end counted. tokens: (R, T) int64, what was read, T = 1;
    output: what the decoder gave for it.

    Before the first step all of the prompts but their last tokens are read at once, where there are more. Nothing is
    chosen then: T is any, lengths are those of the prefixes, and on the left `left_padding` (R,) int64 tokens of a row
    are padding, None for none.
    """

    sentences: NDArray[np.int64]
    lengths: NDArray[np.int64]
    tokens: Tensor
    output: Output
    left_padding: Tensor | None = None

    @property
    def beam_size(self) -> int:
        """Hypotheses a sentence, places that hold none included."""
        return len(self.tokens) // len(self.sentences)

    @property
    def read(self) -> Tensor:
        """(R, T) bool, False where `tokens` is padding."""
        places = torch.arange(self.tokens.size(1), device=self.tokens.device).expand(self.tokens.shape)
        return places >= 0 if self.left_padding is None else places >= self.left_padding.unsqueeze(1)

    def of_hypotheses(self, values: Tensor) -> Tensor:
        """Values of all prompts, one row each, as values of the R hypotheses."""
        if len(values) != len(self.sentences):  # or none has left
            values = values[torch.from_numpy(self.sentences).to(values.device)]
        return values.repeat_interleave(self.beam_size, 0)


class Endings(NamedTuple):
    """N hypotheses that get their score.

    sentences: (N,) int64, which of the prompts they continue; lengths: (N,) int64, their tokens, the end counted if
    they are finished.
    """

    sentences: NDArray[np.int64]
    lengths: NDArray[np.int64]
    finished: bool


class Rule:
    """What all rules share: what they carry along with the hypotheses."""

    def start(self, prompts: Prompts) -> TensorTree:
        """What the rule carries for the first hypothesis of each sentence, a tree of B rows; None for nothing."""
        return None

    def read(self, state: TensorTree, step: Step) -> TensorTree:
        """What it carries once the hypotheses have read `step.tokens`; called only where `start` gave something."""
        return state

    def reorder(self, state: TensorTree, rows: Tensor, beam_size: int) -> TensorTree:
        """What it carries for hypotheses `rows` (R',) int64 of the old ones, `beam_size` of them a sentence."""
        return tree_map(
            lambda tensor: tensor.index_select(0, rows), state, lambda inner: inner.reorder(rows, beam_size)
        )


class Restriction(Rule, ABC):
    """What may follow, searched and drawn. The log-probabilities of what may follow stay the model's own."""

    @abstractmethod
    def restrict(self, logits: Tensor, step: Step, state: TensorTree) -> None:
        """Put −∞ into logits (R, V) float32, in place, at what must not follow each hypothesis."""


class Addition(Rule, ABC):
    """What is added to the log-probabilities of continuations before they are compared, such as another model's."""

    @abstractmethod
    def add(self, step: Step, state: TensorTree) -> Tensor:
        """(R, V) float32 (or what broadcasts to it), never above 0, or stopping would not be exact.

        It counts in the scores, not in `Hypothesis.log_probability`.
        """


class Scoring(Rule, ABC):
    """How a hypothesis' score comes from its summed log-probability: the rules' parts in turn, in their order."""

    @abstractmethod
    def score(self, scores: NDArray[np.float64], ended: Endings, state: TensorTree) -> NDArray[np.float64]:
        """(N,) float64, from what the rules before this one made of the sums; state: N rows, of these hypotheses."""

    @abstractmethod
    def bound(self, bounds: NDArray[np.float64], sentences: NDArray[np.int64]) -> NDArray[np.float64]:
        """(B,) float64: no continuation of a hypothesis gets a score above it from this rule.

        bounds: (B,) float64, the same of the rules before this one, and before the first of the sum so far;
        sentences: as in `Step`. A sentence leaves the batch when this cannot change its result any more.
        """


class Sizes(NamedTuple):
    """Of each sentence's beam, (B,) int64: how many of the best continuations are looked at, how many may live on."""

    considered: NDArray[np.int64]
    live: NDArray[np.int64]


class BeamSizes(Rule, ABC):
    """How many hypotheses each sentence keeps, where that is fewer than the search has places for."""

    @abstractmethod
    def sizes(self, step: Step, ended: NDArray[np.int64], state: TensorTree) -> Sizes:
        """Those of this step; ended: (B,) int64, how many hypotheses of each sentence have ended before it."""


@dataclass(frozen=True)
class RuleStates:
    """A value: each step of the search makes another. The methods below ask the rules of one kind, in order."""

    rules: tuple[Rule, ...]
    states: tuple[TensorTree, ...]

    @staticmethod
    def start(rules: Iterable[Rule], prompts: Prompts) -> "RuleStates":
        """Before the first step."""
        rules = tuple(rules)
        return RuleStates(rules, tuple(rule.start(prompts) for rule in rules))

    def read(self, step: Step) -> "RuleStates":
        """After the hypotheses have read."""
        return self._each(lambda rule, state: rule.read(state, step))

    def reorder(self, rows: Tensor, beam_size: int) -> "RuleStates":
        """For hypotheses `rows` (R',) int64 of the old ones, `beam_size` of them a sentence."""
        return self._each(lambda rule, state: rule.reorder(state, rows, beam_size))

    def restrict(self, logits: Tensor, step: Step) -> None:
        """Put −∞ into logits (R, V), in place, at what must not follow."""
        for rule, state in zip(self.rules, self.states, strict=True):
            if isinstance(rule, Restriction):
                rule.restrict(logits, step, state)

    def add(self, logits: Tensor, step: Step) -> Tensor:
        """(R, V) with what is added; the same tensor where nothing is."""
        for rule, state in zip(self.rules, self.states, strict=True):
            if isinstance(rule, Addition):
                logits = logits + rule.add(step, state)
        return logits

    @property
    def narrows(self) -> bool:
        """Whether a rule may want fewer hypotheses than there are places for."""
        return any(isinstance(rule, BeamSizes) for rule in self.rules)

    def sizes(self, step: Step, ended: NDArray[np.int64]) -> Sizes:
        """The smallest that a rule which narrows the beam wants."""
        wanted = [
            rule.sizes(step, ended, state)
            for rule, state in zip(self.rules, self.states, strict=True)
            if isinstance(rule, BeamSizes)
        ]
        return Sizes(*map(np.minimum.reduce, zip(*wanted, strict=True)))

    def scores(self, totals: NDArray[np.float32], rows: Tensor, ended: Endings) -> NDArray[np.float64]:
        """(N,) float64, of hypotheses `rows` (N,) int64 with these totals."""
        scores = np.asarray(totals, np.float64)
        for rule, state in zip(self.rules, self.states, strict=True):
            if isinstance(rule, Scoring):
                scores = rule.score(scores, ended, tree_map(lambda tensor: tensor[rows], state))
        return scores

    def bounds(self, totals: NDArray[np.float32], sentences: NDArray[np.int64]) -> NDArray[np.float64]:
        """(B,) float64: no continuation of a hypothesis with this total, one a sentence, gets a score above it."""
        bounds = np.asarray(totals, np.float64)
        for rule in self.rules:
            if isinstance(rule, Scoring):
                bounds = rule.bound(bounds, sentences)
        return bounds

    def _each(self, change: Callable[[Rule, TensorTree], TensorTree]) -> "RuleStates":
        states = (
            None if state is None else change(rule, state) for rule, state in zip(self.rules, self.states, strict=True)
        )
        return RuleStates(self.rules, tuple(states))
