"""The interface between a search and its rules, and `RuleStates`, all rules of a search with their states.

A rule is a subclass of `Restriction`, `Addition`, `Scoring` or `BeamSizes`; unused kinds add no work to the search. A
rule can have one value per sentence, so that sentences in the same batch can have different settings. A rule can also
have a state: a tree of tensors with one row per hypothesis, which the search reorders along with the hypotheses.
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
    """A step as passed to rules, after the decoder step for the last tokens of R = B · beam_size hypotheses.

    The rows of a sentence are adjacent. sentences: (B,) int64, sorted indices of the prompts whose search has not
    ended. lengths: (B,) int64, output length in tokens, including the token to be selected in this step, which may be
    EOS. tokens: (R, T) int64, the input tokens of the decoder, T = 1. output: the decoder's output for these tokens.

    Before the first step, all prompt tokens except the last, if there are any, are passed to the decoder and the rules
    in one step. No token is selected in this step: T is any number, lengths are those of the prefixes, and the first
    `left_padding` (R,) int64 tokens of each row are padding (None: no padding).
    """

    sentences: NDArray[np.int64]
    lengths: NDArray[np.int64]
    tokens: Tensor
    output: Output
    left_padding: Tensor | None = None

    @property
    def beam_size(self) -> int:
        """Number of hypotheses per sentence, including empty slots."""
        return len(self.tokens) // len(self.sentences)

    @property
    def read(self) -> Tensor:
        """Mask of `tokens`, (R, T) bool, False at padding."""
        positions = torch.arange(self.tokens.size(1), device=self.tokens.device).expand(self.tokens.shape)
        return positions >= 0 if self.left_padding is None else positions >= self.left_padding.unsqueeze(1)

    def of_hypotheses(self, values: Tensor) -> Tensor:
        """Expand values with one row per prompt to one row per hypothesis, R rows."""
        if len(values) != len(self.sentences):  # the search of some sentences has ended
            values = values[torch.from_numpy(self.sentences).to(values.device)]
        return values.repeat_interleave(self.beam_size, 0)


class Endings(NamedTuple):
    """N ended hypotheses to be scored.

    sentences: (N,) int64, indices of their prompts; lengths: (N,) int64, number of tokens, including EOS if finished;
    finished: whether the hypotheses end with EOS.
    """

    sentences: NDArray[np.int64]
    lengths: NDArray[np.int64]
    finished: bool


class Rule:
    """Base class of all rules, with methods that manage the state."""

    def start(self, prompts: Prompts) -> TensorTree:
        """Return the state of each sentence's initial hypothesis, a tree of B rows; None for a rule without state."""
        return None

    def read(self, state: TensorTree, step: Step) -> TensorTree:
        """Return the state after `step.tokens`. Called only if `start` returned a state."""
        return state

    def reorder(self, state: TensorTree, rows: Tensor, beam_size: int) -> TensorTree:
        """Return the state after hypotheses are replaced by `rows` (R',) int64, `beam_size` per sentence."""
        return tree_map(
            lambda tensor: tensor.index_select(0, rows), state, lambda inner: inner.reorder(rows, beam_size)
        )


class Restriction(Rule, ABC):
    """A rule that forbids tokens in search and sampling. The log-probabilities of other tokens do not change."""

    @abstractmethod
    def restrict(self, logits: Tensor, step: Step, state: TensorTree) -> None:
        """Set logits (R, V) float32 to −∞, in place, for the tokens that must not follow each hypothesis."""


class Addition(Rule, ABC):
    """A rule that adds a value to the log-probability of each continuation, such as the log-probability under another
    model, before continuations are compared.
    """

    @abstractmethod
    def add(self, step: Step, state: TensorTree) -> Tensor:
        """Return the values to add, (R, V) float32 or broadcastable to this shape.

        The values must not be above 0, because the exact stopping rule relies on this. They are part of scores, but not
        of `Hypothesis.log_probability`.
        """


class Scoring(Rule, ABC):
    """A rule that computes a hypothesis' score from its summed log-probability. Several rules are applied in order."""

    @abstractmethod
    def score(self, scores: NDArray[np.float64], ended: Endings, state: TensorTree) -> NDArray[np.float64]:
        """Return the new scores, (N,) float64.

        scores: (N,), the scores computed by the preceding rules. state: N rows, those of the ended hypotheses.
        """

    @abstractmethod
    def bound(self, bounds: NDArray[np.float64], sentences: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return (B,) float64, upper bounds on the scores of all continuations of one hypothesis per sentence.

        bounds: (B,) float64, bounds of the preceding rules; for the first rule, the summed log-probabilities.
        sentences: as in `Step`. The bounds determine when a sentence leaves the batch.
        """


class Sizes(NamedTuple):
    """Beam sizes, each (B,) int64. considered: continuations to consider; live: maximum number of live hypotheses."""

    considered: NDArray[np.int64]
    live: NDArray[np.int64]


class BeamSizes(Rule, ABC):
    """A rule that sets the beam size of each sentence, at most the number of slots of the search."""

    @abstractmethod
    def sizes(self, step: Step, ended: NDArray[np.int64], state: TensorTree) -> Sizes:
        """Return the sizes in this step. ended: (B,) int64, number of each sentence's already ended hypotheses."""


@dataclass(frozen=True)
class RuleStates:
    """All rules of a search with their states, immutable. Each method applies the rules of one kind, in order."""

    rules: tuple[Rule, ...]
    states: tuple[TensorTree, ...]

    @staticmethod
    def start(rules: Iterable[Rule], prompts: Prompts) -> "RuleStates":
        """Return the states before the first step."""
        rules = tuple(rules)
        return RuleStates(rules, tuple(rule.start(prompts) for rule in rules))

    def read(self, step: Step) -> "RuleStates":
        """Return the states after the tokens of a step."""
        return self._each(lambda rule, state: rule.read(state, step))

    def reorder(self, rows: Tensor, beam_size: int) -> "RuleStates":
        """Return the states after hypotheses are replaced by `rows` (R',) int64, `beam_size` per sentence."""
        return self._each(lambda rule, state: rule.reorder(state, rows, beam_size))

    def restrict(self, logits: Tensor, step: Step) -> None:
        """Set logits (R, V) to −∞, in place, for forbidden tokens."""
        for rule, state in zip(self.rules, self.states, strict=True):
            if isinstance(rule, Restriction):
                rule.restrict(logits, step, state)

    def add(self, logits: Tensor, step: Step) -> Tensor:
        """Return logits (R, V) plus all additions, or the same tensor if there are no additions."""
        for rule, state in zip(self.rules, self.states, strict=True):
            if isinstance(rule, Addition):
                logits = logits + rule.add(step, state)
        return logits

    @property
    def narrows(self) -> bool:
        """Whether a rule may keep fewer hypotheses than there are slots."""
        return any(isinstance(rule, BeamSizes) for rule in self.rules)

    def sizes(self, step: Step, ended: NDArray[np.int64]) -> Sizes:
        """Return the smallest sizes that the rules set."""
        sizes = [
            rule.sizes(step, ended, state)
            for rule, state in zip(self.rules, self.states, strict=True)
            if isinstance(rule, BeamSizes)
        ]
        return Sizes(*map(np.minimum.reduce, zip(*sizes, strict=True)))

    def scores(self, totals: NDArray[np.float32], rows: Tensor, ended: Endings) -> NDArray[np.float64]:
        """Return the scores, (N,) float64, of the hypotheses in `rows`, (N,) int64, with these totals."""
        scores = np.asarray(totals, np.float64)
        for rule, state in zip(self.rules, self.states, strict=True):
            if isinstance(rule, Scoring):
                scores = rule.score(scores, ended, tree_map(lambda tensor: tensor[rows], state))
        return scores

    def bounds(self, totals: NDArray[np.float32], sentences: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return (B,) float64, upper bounds on the scores of all continuations of one hypothesis per sentence."""
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
