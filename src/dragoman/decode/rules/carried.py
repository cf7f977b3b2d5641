"""`Carried`: the rules of a search, each with what it carries along with the hypotheses."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.rule import Addition, BeamSizes, Ended, Restriction, Rule, Scoring, Sizes, Step
from dragoman.models.interface import Tree, tree_map


@dataclass(frozen=True)
class Carried:
    """A value: each step of the search makes another. The methods below ask the rules of one kind, in order."""

    rules: tuple[Rule, ...]
    states: tuple[Tree, ...]

    @staticmethod
    def start(rules: Iterable[Rule], prompts: Prompts) -> "Carried":
        """Before the first step."""
        rules = tuple(rules)
        return Carried(rules, tuple(rule.start(prompts) for rule in rules))

    def read(self, step: Step) -> "Carried":
        """After the hypotheses have read."""
        return self._each(lambda rule, state: rule.read(state, step))

    def reorder(self, rows: Tensor, beam_size: int) -> "Carried":
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

    def scores(self, totals: NDArray[np.float32], rows: Tensor, ended: Ended) -> NDArray[np.float64]:
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

    def _each(self, change: Callable[[Rule, Tree], Tree]) -> "Carried":
        states = (
            None if state is None else change(rule, state) for rule, state in zip(self.rules, self.states, strict=True)
        )
        return Carried(self.rules, tuple(states))
