"""`Automaton`: tracks, token by token, the required phrases that an output contains, in any order."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from dragoman.decode.constraints.constraint import Alternative, Constraint, Edges, max_added_tokens, size

_MAX_READINGS = 64
"""Maximum number of readings kept per output. Only phrases that consist of each other's words have more readings."""

_NONE = -1


class Reading(NamedTuple):
    """One way to divide an output into phrases and other tokens.

    met: the complete phrases, as a bit mask. phrase, alternative: the phrase at the end of the output and its form, −1
    if the output does not end with a phrase. read: number of tokens of this form at the end of the output. If the form
    is complete, the phrase is met unless the next token continues its last word.
    """

    met: int
    phrase: int = _NONE
    alternative: int = 0
    read: int = 0


class Kind(NamedTuple):
    """The kind of a token that continues no phrase: whether it begins and ends with a word character (see `Edges`)."""

    opens: bool
    closes: bool


KINDS = tuple(Kind(opens, closes) for closes in (False, True) for opens in (False, True))
"""All kinds; the index is 1 for `opens` plus 2 for `closes`."""


class AutomatonState(NamedTuple):
    """All readings of an output that can affect the result. inside: whether the output ends within a word."""

    readings: frozenset[Reading]
    inside: bool


class Automaton:
    """An automaton over output tokens that tracks the phrases of one sentence. No two phrases share an output token.

    The automaton follows all divisions of an output into phrases and other tokens at once (the subset construction).
    It therefore finds every phrase even if phrases overlap, have the same first tokens, or are required twice.
    """

    def __init__(self, constraints: Sequence[Constraint], edges: Edges) -> None:
        self._constraints, self._edges = constraints, edges
        self._sizes = [size(each) for each in constraints]
        self._costs = [min(map(max_added_tokens, each)) for each in constraints]
        self._starts = [_starts(each) for each in constraints]
        first: dict[Constraint, int] = {}
        self._before = []
        """For each phrase, the index of the previous equal phrase, which must be met first; −1 if there is none."""
        for position, each in enumerate(constraints):
            self._before.append(first.get(each, _NONE))
            first[each] = position
        self._all = (1 << len(constraints)) - 1
        self._next: dict[tuple[AutomatonState, int], AutomatonState] = {}
        self.size = sum(self._sizes)
        """Total number of tokens of the phrases in their shortest forms."""

    @cached_property
    def start(self) -> AutomatonState:
        """The state of an empty output."""
        return AutomatonState(frozenset([Reading(0)]), False)

    def follow(self, state: AutomatonState, token: int) -> AutomatonState:
        """Return the state after one more token."""
        found = self._next.get((state, token))
        if found is None:
            kind = Kind(bool(self._edges.opens[token]), bool(self._edges.closes[token]))
            found = self._next[state, token] = self.after(state, token, kind)
        return found

    def after(self, state: AutomatonState, token: int, kind: Kind) -> AutomatonState:
        """Return the state after a token of this kind. The token −1 represents all tokens that no phrase contains."""
        readings: set[Reading] = set()
        for reading in state.readings:
            met = reading.met
            if reading.phrase != _NONE:
                alternative = self._alternative(reading)
                if reading.read < len(alternative.ids):
                    if alternative.ids[reading.read] == token:
                        readings.add(reading._replace(read=reading.read + 1))
                elif not (alternative.closes and kind.opens):
                    met |= 1 << reading.phrase
            readings.add(Reading(met))
            for phrase in self._unmet(met):
                for position in self._starts[phrase][state.inside].get(token, ()):
                    readings.add(Reading(met, phrase, position, 1))
        return AutomatonState(self._without_dominated(readings), kind.closes)

    def phrase_tokens(self, state: AutomatonState) -> list[int]:
        """Return the tokens that begin or continue a phrase, sorted by id."""
        tokens: set[int] = set()
        for reading in state.readings:
            met = reading.met
            if reading.phrase != _NONE:
                ids = self._alternative(reading).ids
                if reading.read < len(ids):
                    tokens.add(ids[reading.read])
                else:
                    met |= 1 << reading.phrase
            for phrase in self._unmet(met):
                tokens.update(self._starts[phrase][state.inside])
        return sorted(tokens)

    def accepts(self, state: AutomatonState) -> bool:
        """Return whether the output may end, i.e. whether all phrases are met."""
        return any(self._done(reading) == self._all for reading in state.readings)

    def bank(self, state: AutomatonState) -> int:
        """Return the number of phrase tokens in the output, from 0 to `size`."""
        return max(map(self._bank, state.readings))

    def need(self, state: AutomatonState) -> int:
        """Return an upper bound on the number of tokens needed to complete the remaining phrases."""
        return min(self._need(reading, state.inside) for reading in state.readings)

    def positions(self, tokens: Sequence[int]) -> list[tuple[int, Alternative]]:
        """Return the start position and the form of each phrase in an output, from left to right.

        If the output does not contain all phrases, the result is the set of phrases with the most tokens.
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
            state = AutomatonState(self._without_dominated(set(links)), kind.closes)
        reading = max(state.readings, key=lambda each: (self._done(each) == self._all, self._bank(each), each))
        matches, met = [], self._done(reading)
        for position in range(len(tokens), 0, -1):
            alternative = self._alternative(reading) if reading.phrase != _NONE else None
            complete = alternative is not None and reading.read == len(alternative.ids)
            # a complete form whose last word continues is not met
            if alternative is not None and complete and met >> reading.phrase & 1:
                matches.append((position - len(alternative.ids), alternative))
            met = reading.met
            reading = reached[position - 1][reading]
        return matches[::-1]

    def _alternative(self, reading: Reading) -> Alternative:
        return self._constraints[reading.phrase][reading.alternative]

    def _unmet(self, met: int) -> Iterator[int]:
        """Yield each unmet phrase. Of several equal phrases, only the first unmet one is yielded."""
        for phrase, before in enumerate(self._before):
            if not met >> phrase & 1 and (before == _NONE or met >> before & 1):
                yield phrase

    def _done(self, reading: Reading) -> int:
        """Return the phrases that are met if the output ends with this reading, as a bit mask."""
        if reading.phrase != _NONE and reading.read == len(self._alternative(reading).ids):
            return reading.met | 1 << reading.phrase
        return reading.met

    def _bank(self, reading: Reading) -> int:
        bank = sum(size for phrase, size in enumerate(self._sizes) if reading.met >> phrase & 1)
        if reading.phrase == _NONE:
            return bank
        size = self._sizes[reading.phrase]  # the tokens of longer forms count proportionally
        return bank + min(size, -(-reading.read * size // len(self._alternative(reading).ids)))

    def _need(self, reading: Reading, inside: bool) -> int:
        done = self._done(reading)
        missing = [phrase for phrase in range(len(self._costs)) if not done >> phrase & 1]
        need = sum(self._costs[phrase] for phrase in missing)
        if reading.phrase != _NONE and done == reading.met:
            rest = len(self._alternative(reading).ids) - reading.read
            return need - max(0, self._costs[reading.phrase] - rest)
        return need - max((self._saved(phrase, inside) for phrase in missing), default=0)

    def _saved(self, phrase: int, inside: bool) -> int:
        """Return the difference between the phrase's maximum cost and its cost if it begins at the next token."""
        now = min(len(each.ids) + (each.opens and inside) for each in self._constraints[phrase])
        return self._costs[phrase] - now

    def _without_dominated(self, found: set[Reading]) -> frozenset[Reading]:
        """Remove readings that are dominated by others."""
        mets: dict[tuple[int, ...], set[int]] = {}  # of the readings that end in the same way
        for one in found:
            mets.setdefault(one[1:], set()).add(one.met)
        maximal = {sets: _maximal(sets) for sets in set(map(frozenset, mets.values()))}
        within = {end: maximal[frozenset(sets)] for end, sets in mets.items()}
        with_phrase = {met for end, sets in mets.items() if end[0] != _NONE for met in sets}
        kept = [
            one
            for one in found
            if one.met in within[one[1:]]
            and not (one.phrase == _NONE and any(one.met & met == one.met for met in with_phrase))
        ]
        if len(kept) > _MAX_READINGS:
            kept = sorted(kept, key=lambda one: (-self._bank(one), one))[:_MAX_READINGS]
        return frozenset(kept)


def _starts(constraint: Constraint) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """Return the forms of a phrase by their first token: outside a word, and inside a word, where some cannot begin."""
    anywhere: dict[int, list[int]] = {}
    inside: dict[int, list[int]] = {}
    for position, alternative in enumerate(constraint):
        anywhere.setdefault(alternative.ids[0], []).append(position)
        if not alternative.opens:
            inside.setdefault(alternative.ids[0], []).append(position)
    return anywhere, inside


def _maximal(sets: Iterable[int]) -> frozenset[int]:
    """Return the bit masks that are not subsets of other bit masks."""
    kept: list[int] = []
    for one in sorted(sets, key=int.bit_count, reverse=True):
        if all(one & other != one for other in kept):
            kept.append(one)
    return frozenset(kept)
