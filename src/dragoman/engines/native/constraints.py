"""`NativeConstraints`: the phrases that the outputs of a native request must contain, as states of an automaton."""

from collections.abc import Sequence
from contextlib import nullcontext
from ctypes import addressof, c_int32
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.base.cancellation import active_cancellation
from dragoman.decode.constraints.automaton import Automaton
from dragoman.decode.constraints.constraint import Constraint, Edges, constrained_beam_size, tokens_needed
from dragoman.decode.constraints.states import AutomatonStates
from dragoman.native import library


class TokenKinds:
    """The edges of a vocabulary's tokens, also in the library's memory layout.

    kinds: (V,) uint8, the kind of each token, as an index into `automaton.KINDS`.
    """

    def __init__(self, edges: Edges) -> None:
        self.edges = edges
        self.kinds: NDArray[np.uint8] = edges.opens.astype(np.uint8) + 2 * edges.closes.astype(np.uint8)


class NativeConstraints:
    """The required phrases of one request, for a single search.

    After each step of the search, the library calls `follow` for the states after the new tokens.
    """

    def __init__(self, constraints: Sequence[Constraint], token_kinds: TokenKinds, prefix: Sequence[int]) -> None:
        """prefix: the ids at the start of every output."""
        self._constraints, self.kinds = constraints, token_kinds.kinds
        automaton = Automaton(constraints, token_kinds.edges)
        self._states = AutomatonStates([automaton])
        self._structures: dict[int, library.ConstraintState] = {}
        """The structure of each state that the library has received, by number."""
        self._numbers: dict[int, int] = {}
        """The number of each of these states, by the address of its structure."""
        self._cancellation = active_cancellation()
        self.error: BaseException | None = None
        """The error that ended the search."""
        number = self._states.start(0)
        for token in prefix:
            number = self._states.follow(0, number, token)
        self.start = self._address(number)
        """The address of the state after the prefix."""
        self.follow = library.FollowTokens(self._follow)
        self.phrase_tokens = automaton.size
        ids = {token for each in constraints for alternative in each for token in alternative.ids}
        self.max_phrase_tokens = len(ids)
        """An upper bound on the number of tokens that may begin or continue a phrase."""

    @property
    def tokens_needed(self) -> int:
        """A number of tokens that is sufficient for all phrases."""
        return tokens_needed(self._constraints)

    def beam_size(self, beam: int) -> int:
        """Return the number of live hypotheses for a requested beam size."""
        return constrained_beam_size(beam, self._constraints)

    def _follow(self, states: Any, tokens: Any, count: int) -> int:
        """See `FollowTokens` in `source/interface.h`. Called in the library's threads, which cannot raise errors."""
        try:
            with nullcontext() if self._cancellation is None else self._cancellation.active():
                for row in range(count):
                    number = self._states.follow(0, self._numbers[states[row]], tokens[row])
                    states[row] = self._address(number)
        except BaseException as error:
            self.error = error
            return 0
        return 1

    def _address(self, number: int) -> int:
        """Return the address of a state's structure."""
        structure = self._structures.get(number)
        if structure is None:
            entry = self._states.entries[number]
            count = len(entry.tokens)
            values = (c_int32 * (3 * count))(*entry.tokens, *entry.banks, *entry.needs)
            first = addressof(values)
            structure = library.ConstraintState(
                first,
                first + 4 * count,
                first + 8 * count,
                count,
                entry.complete,
                (c_int32 * library.TOKEN_KINDS)(*entry.other_banks),
                (c_int32 * library.TOKEN_KINDS)(*entry.other_needs),
            )
            structure.values = values
            self._structures[number] = structure
            self._numbers[addressof(structure)] = number
        return addressof(structure)
