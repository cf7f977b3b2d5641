"""`Progress`: tracks the constraint tokens that each hypothesis of a search contains."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.base.cancellation import check_cancelled, until_cancelled
from dragoman.decode.constraints.automaton import KINDS, Automaton, AutomatonState
from dragoman.decode.constraints.constraint import Constraints
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


class _Entry(NamedTuple):
    """A state of a sentence's automaton, with the corresponding values of `Outlook`."""

    automaton: Automaton
    state: AutomatonState
    tokens: list[int]
    banks: list[int]
    needs: list[int]
    other_banks: list[int]
    other_needs: list[int]
    complete: bool


class Progress(Rule):
    """A rule that tracks the automaton state of each hypothesis, stored as its number, (R,) int64.

    Each automaton state is computed when the search first reaches it, and cached.
    """

    def __init__(self, constraints: Constraints, device: torch.device) -> None:
        self._automata = [Automaton(each, constraints.edges) for each in constraints.of]
        self._device = device
        self._entries: list[_Entry] = []
        self._numbers: dict[tuple[int, AutomatonState], int] = {}
        self._next: dict[tuple[int, int], int] = {}
        edges = constraints.edges
        self.kinds = torch.from_numpy(edges.opens + 2 * edges.closes.astype(np.int64)).to(device)
        """(V,) int64: the kind of each token, as an index into `KINDS`."""
        self.sizes = np.array([automaton.size for automaton in self._automata], np.int64)
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
        entries = [self._entries[number] for number in state.tolist()]
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
            return self._number(sentence, self._automata[sentence].start)
        found = self._next.get((number, token))
        if found is None:
            check_cancelled()
            entry = self._entries[number]
            found = self._next[number, token] = self._number(sentence, entry.automaton.follow(entry.state, token))
        return found

    def _number(self, sentence: int, state: AutomatonState) -> int:
        found = self._numbers.setdefault((sentence, state), len(self._entries))
        if found == len(self._entries):
            automaton = self._automata[sentence]
            tokens = automaton.phrase_tokens(state)
            after = [automaton.follow(state, token) for token in until_cancelled(tokens)]
            others = [automaton.after(state, _NO_TOKEN, kind) for kind in KINDS]
            self._entries.append(
                _Entry(
                    automaton,
                    state,
                    tokens,
                    [automaton.bank(each) for each in after],
                    [automaton.need(each) for each in after],
                    [automaton.bank(each) for each in others],
                    [automaton.need(each) for each in others],
                    automaton.accepts(state),
                )
            )
        return found


def _padded(rows: list[list[int]], longest: int, filler: int) -> NDArray[np.int64]:
    return np.array([row + [filler] * (longest - len(row)) for row in rows], np.int64).reshape(len(rows), longest)
