"""`Automaton`: tracks which phrases an output contains, token by token and in any order."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from dragoman.decode.constraints.constraint import Alternative, Constraint, Edges, cost, size

_MOST = 64
"""Maximum number of readings kept per output; only phrases made of each other's words ever have more."""

_NONE = -1


class Reading(NamedTuple):
    """One way to divide an output into phrases and other tokens.

    met: the phrases that are complete, as bits. phrase, alternative: the phrase at the end of the output and its form,
    −1 if the output does not end with a phrase. read: number of tokens read of this form; if all are read, the phrase
    is met unless the next token continues its last word.
    """

    met: int
    phrase: int = _NONE
    alternative: int = 0
    read: int = 0


class Kind(NamedTuple):
    """Whether a token that continues no phrase begins and ends with a character of a word."""

    opens: bool
    closes: bool


KINDS = tuple(Kind(opens, closes) for closes in (False, True) for opens in (False, True))
"""All kinds by their number: 1 for `opens` plus 2 for `closes`."""


class AutomatonState(NamedTuple):
    """All readings of an output that can affect the result, and whether it ends within a word."""

    readings: frozenset[Reading]
    inside: bool


class Automaton:
    """An automaton that reads an output and tracks one sentence's phrases, no two of which share a token of the output.

    It follows all divisions of an output into phrases and other tokens at once (the subset construction), so it finds
    every phrase even if phrases overlap, begin alike, or are required twice.
    """

    def __init__(self, constraints: Sequence[Constraint], edges: Edges) -> None:
        self._constraints, self._edges = constraints, edges
        self._sizes = [size(each) for each in constraints]
        self._costs = [min(map(cost, each)) for each in constraints]
        first: dict[Constraint, int] = {}
        self._before = []
        """For each phrase, the previous equal one, which has to be met first; −1 if there is none."""
        for position, each in enumerate(constraints):
            self._before.append(first.get(each, _NONE))
            first[each] = position
        self._all = (1 << len(constraints)) - 1
        self._next: dict[tuple[AutomatonState, int], AutomatonState] = {}
        self.size = sum(self._sizes)
        """Number of tokens of all phrases, each in its shortest form."""

    @cached_property
    def start(self) -> AutomatonState:
        """The state of an empty output."""
        return AutomatonState(frozenset([Reading(0)]), False)

    def follow(self, state: AutomatonState, token: int) -> AutomatonState:
        """The state after one more token."""
        found = self._next.get((state, token))
        if found is None:
            kind = Kind(bool(self._edges.opens[token]), bool(self._edges.closes[token]))
            found = self._next[state, token] = self.after(state, token, kind)
        return found

    def after(self, state: AutomatonState, token: int, kind: Kind) -> AutomatonState:
        """The state after a token of this kind; −1 stands for any token that no phrase contains."""
        found: set[Reading] = set()
        for reading in state.readings:
            met = reading.met
            if reading.phrase != _NONE:
                alternative = self._alternative(reading)
                if reading.read < len(alternative.ids):
                    if alternative.ids[reading.read] == token:
                        found.add(reading._replace(read=reading.read + 1))
                elif not (alternative.closes and kind.opens):
                    met |= 1 << reading.phrase
            found.add(Reading(met))
            for phrase, position, alternative in self._beginnings(met, state.inside):
                if alternative.ids[0] == token:
                    found.add(Reading(met, phrase, position, 1))
        return AutomatonState(self._mattering(found), kind.closes)

    def wanted(self, state: AutomatonState) -> list[int]:
        """Tokens that begin or continue a phrase, ascending."""
        found: set[int] = set()
        for reading in state.readings:
            met = reading.met
            if reading.phrase != _NONE:
                ids = self._alternative(reading).ids
                if reading.read < len(ids):
                    found.add(ids[reading.read])
                else:
                    met |= 1 << reading.phrase
            found.update(each.ids[0] for _, _, each in self._beginnings(met, state.inside))
        return sorted(found)

    def accepts(self, state: AutomatonState) -> bool:
        """Whether an output may end: all phrases are met."""
        return any(self._done(reading) == self._all for reading in state.readings)

    def bank(self, state: AutomatonState) -> int:
        """The number of phrase tokens that are met, from 0 to `size`."""
        return max(map(self._bank, state.readings))

    def need(self, state: AutomatonState) -> int:
        """An upper bound of the number of tokens needed to meet the remaining phrases."""
        return min(self._need(reading, state.inside) for reading in state.readings)

    def positions(self, tokens: Sequence[int]) -> list[tuple[int, Alternative]]:
        """The first position and the form of each phrase in an output, from left to right.

        If the output does not contain all phrases, the phrases with as many tokens as possible are returned.
        """
        state = self.start
        reached: list[dict[Reading, Reading]] = []
        for token in tokens:
            kind = Kind(bool(self._edges.opens[token]), bool(self._edges.closes[token]))
            links: dict[Reading, Reading] = {}
            for reading in sorted(state.readings):
                for after in self.after(AutomatonState(frozenset([reading]), state.inside), token, kind).readings:
                    links.setdefault(after, reading)
            reached.append(links)
            state = AutomatonState(self._mattering(set(links)), kind.closes)
        reading = max(state.readings, key=lambda each: (self._done(each) == self._all, self._bank(each), each))
        found, met = [], self._done(reading)
        for position in range(len(tokens), 0, -1):
            alternative = self._alternative(reading) if reading.phrase != _NONE else None
            whole = alternative is not None and reading.read == len(alternative.ids)
            if alternative is not None and whole and met >> reading.phrase & 1:  # otherwise its last word continues
                found.append((position - len(alternative.ids), alternative))
            met = reading.met
            reading = reached[position - 1][reading]
        return found[::-1]

    def _alternative(self, reading: Reading) -> Alternative:
        return self._constraints[reading.phrase][reading.alternative]

    def _beginnings(self, met: int, inside: bool) -> Iterator[tuple[int, int, Alternative]]:
        """Yield the phrases that may begin, i.e. are not met, in all forms that would not run together with a word."""
        for phrase, constraint in enumerate(self._constraints):
            before = self._before[phrase]
            if not met >> phrase & 1 and (before == _NONE or met >> before & 1):
                for position, alternative in enumerate(constraint):
                    if not (alternative.opens and inside):
                        yield phrase, position, alternative

    def _done(self, reading: Reading) -> int:
        """The phrases that are met if the output ends here, as bits."""
        if reading.phrase != _NONE and reading.read == len(self._alternative(reading).ids):
            return reading.met | 1 << reading.phrase
        return reading.met

    def _bank(self, reading: Reading) -> int:
        bank = sum(size for phrase, size in enumerate(self._sizes) if reading.met >> phrase & 1)
        if reading.phrase == _NONE:
            return bank
        whole = self._sizes[reading.phrase]  # other forms meet a proportional share of it
        return bank + min(whole, -(-reading.read * whole // len(self._alternative(reading).ids)))

    def _need(self, reading: Reading, inside: bool) -> int:
        done = self._done(reading)
        left = [phrase for phrase in range(len(self._costs)) if not done >> phrase & 1]
        need = sum(self._costs[phrase] for phrase in left)
        if reading.phrase != _NONE and done == reading.met:
            rest = len(self._alternative(reading).ids) - reading.read
            return need - max(0, self._costs[reading.phrase] - rest)
        return need - max((self._saved(phrase, inside) for phrase in left), default=0)

    def _saved(self, phrase: int, inside: bool) -> int:
        """The number of tokens by which a phrase falls short of its cost if it begins now."""
        now = min(len(each.ids) + (each.opens and inside) for each in self._constraints[phrase])
        return self._costs[phrase] - now

    def _mattering(self, found: set[Reading]) -> frozenset[Reading]:
        """Drop readings that are dominated by others."""
        kept = [
            one
            for one in found
            if not any(
                one is not other
                and one.met & other.met == one.met
                and (one.phrase == _NONE or one[1:] == other[1:])
                and (one.met != other.met or one[1:] != other[1:])
                for other in found
            )
        ]
        if len(kept) > _MOST:
            kept = sorted(kept, key=lambda one: (-self._bank(one), one))[:_MOST]
        return frozenset(kept)
