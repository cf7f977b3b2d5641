"""The interface between a search and its rules, and `RuleStates`, all rules of a search with their states.

A rule is a subclass of one of the kinds below; unused features cost nothing. A rule can have one value per sentence, so
that sentences in the same batch can have different settings. It can also have a state: a tree of tensors with one row
per hypothesis, which the search reorders along with the hypotheses.
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
    """A step as passed to rules, after the decoder has read the tokens of R = B · beam_size hypotheses.

    The rows of a sentence are adjacent. sentences: (B,) int64, indices of the prompts that are still searched,
    ascending; lengths: (B,) int64, number of tokens of their outputs, including the one to be selected in this step,
    which may be EOS. tokens: (R, T) int64, the tokens read, T = 1; output: the decoder's output for these tokens.

    Before the first step, the tokens of the prompts are read at once up to the last one, if there are any. No token is
    selected then: T is any number, lengths are those of the prefixes, and the first `left_padding` (R,) int64 tokens of
    each row are padding (None: no padding).
    """

    sentences: NDArray[np.int64]
    lengths: NDArray[np.int64]
    tokens: Tensor
    output: Output
    left_padding: Tensor | None = None

    @property
    def beam_size(self) -> int:
        """Hypotheses per sentence, including empty slots."""
        return len(self.tokens) // len(self.sentences)

    @property
    def read(self) -> Tensor:
        """(R, T) bool, False where `tokens` is padding."""
        positions = torch.arange(self.tokens.size(1), device=self.tokens.device).expand(self.tokens.shape)
        return positions >= 0 if self.left_padding is None else positions >= self.left_padding.unsqueeze(1)

    def of_hypotheses(self, values: Tensor) -> Tensor:
        """Repeat values of all prompts, one row each, for the R hypotheses."""
        if len(values) != len(self.sentences):  # otherwise all sentences are still searched
            values = values[torch.from_numpy(self.sentences).to(values.device)]
        return values.repeat_interleave(self.beam_size, 0)


class Endings(NamedTuple):
    """N ended hypotheses to be scored.

    sentences: (N,) int64, indices of their prompts; lengths: (N,) int64, number of tokens, including EOS if they are
    finished.
    """

    sentences: NDArray[np.int64]
    lengths: NDArray[np.int64]
    finished: bool


class Rule:
    """Base class of all rules, which manages their state for the hypotheses."""

    def start(self, prompts: Prompts) -> TensorTree:
        """The state for the first hypothesis of each sentence, a tree of B rows; None for a rule without state."""
        return None

    def read(self, state: TensorTree, step: Step) -> TensorTree:
        """The state after the hypotheses have read `step.tokens`; called only if `start` returned a state."""
        return state

    def reorder(self, state: TensorTree, rows: Tensor, beam_size: int) -> TensorTree:
        """The state after hypotheses are replaced by `rows` (R',) int64, `beam_size` per sentence."""
        return tree_map(
            lambda tensor: tensor.index_select(0, rows), state, lambda inner: inner.reorder(rows, beam_size)
        )


class Restriction(Rule, ABC):
    """A rule that forbids tokens in search and sampling; log-probabilities of other tokens do not change."""

    @abstractmethod
    def restrict(self, logits: Tensor, step: Step, state: TensorTree) -> None:
        """Set logits (R, V) float32 to −∞, in place, for the tokens that must not follow each hypothesis."""


class Addition(Rule, ABC):
    """A rule that adds to the log-probabilities of continuations before they are compared, for example those of another
    model.
    """

    @abstractmethod
    def add(self, step: Step, state: TensorTree) -> Tensor:
        """Return (R, V) float32 (or broadcastable to it), never above 0, because the exact stopping rule relies on it.

        The values count in scores, but not in `Hypothesis.log_probability`.
        """


class Scoring(Rule, ABC):
    """A rule that computes a hypothesis' score from its summed log-probability; several are applied in order."""

    @abstractmethod
    def score(self, scores: NDArray[np.float64], ended: Endings, state: TensorTree) -> NDArray[np.float64]:
        """Return (N,) float64, computed from the scores of the preceding rules. state: N rows, of these hypotheses."""

    @abstractmethod
    def bound(self, bounds: NDArray[np.float64], sentences: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return (B,) float64: upper bounds of the scores of all continuations of a hypothesis under this rule.

        bounds: (B,) float64, bounds of the preceding rules; for the first rule, the sums so far. sentences: as in
        `Step`. A sentence leaves the batch when no continuation can change its result.
        """


class Sizes(NamedTuple):
    """For each sentence, (B,) int64: the number of continuations to consider, and the number that may live on."""

    considered: NDArray[np.int64]
    live: NDArray[np.int64]


class BeamSizes(Rule, ABC):
    """A rule that sets the number of hypotheses that each sentence keeps, at most the number of slots of the search."""

    @abstractmethod
    def sizes(self, step: Step, ended: NDArray[np.int64], state: TensorTree) -> Sizes:
        """The sizes in this step. ended: (B,) int64, number of hypotheses of each sentence that ended before it."""


@dataclass(frozen=True)
class RuleStates:
    """All rules of a search with their states; immutable. Methods apply the rules of one kind, in order."""

    rules: tuple[Rule, ...]
    states: tuple[TensorTree, ...]

    @staticmethod
    def start(rules: Iterable[Rule], prompts: Prompts) -> "RuleStates":
        """The states before the first step."""
        rules = tuple(rules)
        return RuleStates(rules, tuple(rule.start(prompts) for rule in rules))

    def read(self, step: Step) -> "RuleStates":
        """The states after the hypotheses have read a step's tokens."""
        return self._each(lambda rule, state: rule.read(state, step))

    def reorder(self, rows: Tensor, beam_size: int) -> "RuleStates":
        """The states after hypotheses are replaced by `rows` (R',) int64, `beam_size` per sentence."""
        return self._each(lambda rule, state: rule.reorder(state, rows, beam_size))

    def restrict(self, logits: Tensor, step: Step) -> None:
        """Set logits (R, V) to −∞, in place, for forbidden tokens."""
        for rule, state in zip(self.rules, self.states, strict=True):
            if isinstance(rule, Restriction):
                rule.restrict(logits, step, state)

    def add(self, logits: Tensor, step: Step) -> Tensor:
        """Logits (R, V) plus all additions; the same tensor if there are none."""
        for rule, state in zip(self.rules, self.states, strict=True):
            if isinstance(rule, Addition):
                logits = logits + rule.add(step, state)
        return logits

    @property
    def narrows(self) -> bool:
        """Whether a rule may keep fewer hypotheses than there are slots."""
        return any(isinstance(rule, BeamSizes) for rule in self.rules)

    def sizes(self, step: Step, ended: NDArray[np.int64]) -> Sizes:
        """The smallest sizes set by any rule."""
        wanted = [
            rule.sizes(step, ended, state)
            for rule, state in zip(self.rules, self.states, strict=True)
            if isinstance(rule, BeamSizes)
        ]
        return Sizes(*map(np.minimum.reduce, zip(*wanted, strict=True)))

    def scores(self, totals: NDArray[np.float32], rows: Tensor, ended: Endings) -> NDArray[np.float64]:
        """(N,) float64: the scores of hypotheses `rows` (N,) int64 with these totals."""
        scores = np.asarray(totals, np.float64)
        for rule, state in zip(self.rules, self.states, strict=True):
            if isinstance(rule, Scoring):
                scores = rule.score(scores, ended, tree_map(lambda tensor: tensor[rows], state))
        return scores

    def bounds(self, totals: NDArray[np.float32], sentences: NDArray[np.int64]) -> NDArray[np.float64]:
        """(B,) float64: upper bounds of the scores of all continuations of one hypothesis per sentence."""
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
