"""`AutomatonStates`: the automaton states that a search has reached, with the tokens that may follow each of them."""

from collections.abc import Sequence
from typing import NamedTuple

from dragoman.base.cancellation import check_cancelled, until_cancelled
from dragoman.decode.constraints.automaton import KINDS, Automaton, AutomatonState

_NO_TOKEN = -1
"""Represents all tokens that no phrase contains, as in `Automaton.after`."""


class StateEntry(NamedTuple):
    """A state of a sentence's automaton, and what follows it.

    tokens: sorted ids of the tokens that begin or continue a phrase. banks, needs: for each of these tokens, the number
    of phrase tokens in the output after it, and the number of tokens needed to complete the missing phrases.
    other_banks, other_needs: the same for all other tokens, by kind. complete: whether the output may end.
    """

    automaton: Automaton
    state: AutomatonState
    tokens: list[int]
    banks: list[int]
    needs: list[int]
    other_banks: list[int]
    other_needs: list[int]
    complete: bool


class AutomatonStates:
    """The states of several sentences' automata, numbered in the order in which the search reaches them.

    Each state and each transition is computed once, when it is first needed.
    """

    def __init__(self, automata: Sequence[Automaton]) -> None:
        self.automata = automata
        self.entries: list[StateEntry] = []
        """The reached states, by number."""
        self._numbers: dict[tuple[int, AutomatonState], int] = {}
        self._next: dict[tuple[int, int], int] = {}

    def start(self, sentence: int) -> int:
        """Return the number of the state of an empty output."""
        return self._number(sentence, self.automata[sentence].start)

    def follow(self, sentence: int, number: int, token: int) -> int:
        """Return the number of the state after one more token."""
        found = self._next.get((number, token))
        if found is None:
            check_cancelled()
            entry = self.entries[number]
            found = self._next[number, token] = self._number(sentence, entry.automaton.follow(entry.state, token))
        return found

    def _number(self, sentence: int, state: AutomatonState) -> int:
        found = self._numbers.setdefault((sentence, state), len(self.entries))
        if found == len(self.entries):
            automaton = self.automata[sentence]
            tokens = automaton.phrase_tokens(state)
            after = [automaton.follow(state, token) for token in until_cancelled(tokens)]
            others = [automaton.after(state, _NO_TOKEN, kind) for kind in KINDS]
            self.entries.append(
                StateEntry(
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
