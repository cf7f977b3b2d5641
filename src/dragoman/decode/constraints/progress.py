"""`Progress`: tracks the constraint tokens that each hypothesis of a search contains."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.decode.constraints.automaton import Automaton
from dragoman.decode.constraints.constraint import Constraints
from dragoman.decode.constraints.states import AutomatonStates
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.rule import Rule, Step
from dragoman.models.interface import TensorTree
from dragoman.text.symbols import BOS

_UNREAD = -1
_NO_TOKEN = -1


class Outlook(NamedTuple):
    """The tokens that may follow each of R hypotheses, and the number of constraint tokens met after each of them.

    tokens: (R, A) int64, sorted ids of the tokens that begin or continue a phrase, padded with −1. banks: (R, A),
    number of constraint tokens met after each of these tokens. allowed: (R, A) bool, False if a token would leave too
    few positions for the missing phrases. other_banks, other_allowed: (R, 4), the corresponding values for all other
    tokens, by kind. complete: (R,) bool, whether the output may end.
    """

    tokens: Tensor
    banks: Tensor
    allowed: Tensor
    other_banks: Tensor
    other_allowed: Tensor
    complete: Tensor


class Progress(Rule):
    """A rule that tracks the automaton state of each hypothesis, stored as its number, (R,) int64."""

    def __init__(self, constraints: Constraints, device: torch.device) -> None:
        self._states = AutomatonStates([Automaton(each, constraints.edges) for each in constraints.of])
        self._device = device
        edges = constraints.edges
        self.kinds = torch.from_numpy(edges.opens + 2 * edges.closes.astype(np.int64)).to(device)
        """(V,) int64: the kind of each token, as an index into `KINDS`."""
        self.sizes = np.array([automaton.size for automaton in self._states.automata], np.int64)
        """(B,): number of phrase tokens of each sentence."""

    def start(self, prompts: Prompts) -> TensorTree:
        """Return the state before the first token."""
        return torch.full((len(prompts),), _UNREAD, dtype=torch.int64, device=self._device)

    def read(self, state: TensorTree, step: Step) -> TensorTree:
        """Advance the automata by the tokens of the step. The output, including a prefix, starts after BOS."""
        numbers: list[int] = state.tolist()
        sentences = step.sentences.repeat(step.beam_size).tolist()
        for column, is_token in zip(step.tokens.T.tolist(), step.read.T.tolist(), strict=True):
            numbers = [
                self._next_number(number, sentence, token) if is_read else number
                for number, sentence, token, is_read in zip(numbers, sentences, column, is_token, strict=True)
            ]
        return torch.tensor(numbers, dtype=torch.int64, device=self._device)

    def outlook(self, state: TensorTree, room: NDArray[np.int64]) -> Outlook:
        """Return the outlook of each hypothesis. room: (R,), maximum number of tokens after the next one."""
        entries = [self._states.entries[number] for number in state.tolist()]
        longest = max(len(each.tokens) for each in entries)
        tokens = _padded([each.tokens for each in entries], longest, _NO_TOKEN)
        needs, room_after = _padded([each.needs for each in entries], longest, 0), room[:, np.newaxis]
        return Outlook(
            *(
                torch.from_numpy(each).to(self._device)
                for each in (
                    tokens,
                    _padded([each.banks for each in entries], longest, 0),
                    (needs <= room_after) & (tokens != _NO_TOKEN),
                    np.array([each.other_banks for each in entries], np.int64),
                    np.array([each.other_needs for each in entries], np.int64) <= room_after,
                    np.array([each.complete for each in entries], np.bool),
                )
            )
        )

    def _next_number(self, number: int, sentence: int, token: int) -> int:
        if number == _UNREAD:
            assert token == BOS
            return self._states.start(sentence)
        return self._states.follow(sentence, number, token)


def _padded(rows: list[list[int]], longest: int, filler: int) -> NDArray[np.int64]:
    return np.array([row + [filler] * (longest - len(row)) for row in rows], np.int64).reshape(len(rows), longest)
