"""`Automaton`: which phrases an output has met, token by token, whatever order they come in."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from dragoman.decode.constraints.constraint import Alternative, Constraint, Edges, cost, size

_MOST = 64
"""Readings of an output that are kept; only phrases that are made of one another's words have more."""

_NONE = -1


class Reading(NamedTuple):
    """One way to read an output: which phrases it has met, as bits, and how much of the one that it ends with.

    phrase: −1 where it ends with none; read: how many tokens of the alternative. Where all of them are read, the phrase
    is met unless the next token goes on with its last word.
    """

    met: int
    phrase: int = _NONE
    alternative: int = 0
    read: int = 0


class Kind(NamedTuple):
    """What a token that continues no phrase does to words: begins, or ends, with one of their characters."""

    opens: bool
    closes: bool


KINDS = tuple(Kind(opens, closes) for closes in (False, True) for opens in (False, True))
"""By their number: 1 for `opens`, 2 for `closes`."""


class AutomatonState(NamedTuple):
    """What is known of an output: all of its readings that may matter, and whether it ends within a word."""

    readings: frozenset[Reading]
    inside: bool


class Automaton:
    """Of one sentence. Phrases share no token; where that can be had in several ways, all are followed.

    An output is read as every division of it into phrases and other tokens at once (the subset construction), so
    nothing is missed where phrases overlap, begin alike, or are asked for twice.
    """

    def __init__(self, constraints: Sequence[Constraint], edges: Edges) -> None:
        self._constraints, self._edges = constraints, edges
        self._sizes = [size(each) for each in constraints]
        self._costs = [min(map(cost, each)) for each in constraints]
        first: dict[Constraint, int] = {}
        self._before = []
        """Of a phrase that is asked for again, the one before it: they are met in this order."""
        for place, each in enumerate(constraints):
            self._before.append(first.get(each, _NONE))
            first[each] = place
        self._all = (1 << len(constraints)) - 1
        self._next: dict[tuple[AutomatonState, int], AutomatonState] = {}
        self.size = sum(self._sizes)
        """Tokens of all phrases, each in its shortest way."""

    @cached_property
    def start(self) -> AutomatonState:
        """Of an empty output."""
        return AutomatonState(frozenset([Reading(0)]), False)

    def follow(self, standing: AutomatonState, token: int) -> AutomatonState:
        """After one token more."""
        found = self._next.get((standing, token))
        if found is None:
            kind = Kind(bool(self._edges.opens[token]), bool(self._edges.closes[token]))
            found = self._next[standing, token] = self.after(standing, token, kind)
        return found

    def after(self, standing: AutomatonState, token: int, kind: Kind) -> AutomatonState:
        """After a token of that kind; −1 is one that no phrase has."""
        found: set[Reading] = set()
        for reading in standing.readings:
            met = reading.met
            if reading.phrase != _NONE:
                alternative = self._alternative(reading)
                if reading.read < len(alternative.ids):
                    if alternative.ids[reading.read] == token:
                        found.add(reading._replace(read=reading.read + 1))
                elif not (alternative.closes and kind.opens):
                    met |= 1 << reading.phrase
            found.add(Reading(met))
            for phrase, place, alternative in self._beginnings(met, standing.inside):
                if alternative.ids[0] == token:
                    found.add(Reading(met, phrase, place, 1))
        return AutomatonState(self._mattering(found), kind.closes)

    def wanted(self, standing: AutomatonState) -> list[int]:
        """Tokens that begin or continue a phrase, ascending."""
        found: set[int] = set()
        for reading in standing.readings:
            met = reading.met
            if reading.phrase != _NONE:
                ids = self._alternative(reading).ids
                if reading.read < len(ids):
                    found.add(ids[reading.read])
                else:
                    met |= 1 << reading.phrase
            found.update(each.ids[0] for _, _, each in self._beginnings(met, standing.inside))
        return sorted(found)

    def accepts(self, standing: AutomatonState) -> bool:
        """Whether an output may end: all phrases are met."""
        return any(self._done(reading) == self._all for reading in standing.readings)

    def bank(self, standing: AutomatonState) -> int:
        """How many of the tokens of all phrases are met, from 0 to `size`."""
        return max(map(self._bank, standing.readings))

    def need(self, standing: AutomatonState) -> int:
        """How many tokens it certainly takes no more than to meet what is left."""
        return min(self._need(reading, standing.inside) for reading in standing.readings)

    def places(self, tokens: Sequence[int]) -> list[tuple[int, Alternative]]:
        """Where an output holds the phrases: for each its first place and how it is written there, from left to right.

        Of an output that does not hold them all, those that it does, as many of their tokens as possible.
        """
        standing = self.start
        reached: list[dict[Reading, Reading]] = []
        for token in tokens:
            kind = Kind(bool(self._edges.opens[token]), bool(self._edges.closes[token]))
            links: dict[Reading, Reading] = {}
            for reading in sorted(standing.readings):
                for after in self.after(AutomatonState(frozenset([reading]), standing.inside), token, kind).readings:
                    links.setdefault(after, reading)
            reached.append(links)
            standing = AutomatonState(self._mattering(set(links)), kind.closes)
        reading = max(standing.readings, key=lambda each: (self._done(each) == self._all, self._bank(each), each))
        found, met = [], self._done(reading)
        for place in range(len(tokens), 0, -1):
            alternative = self._alternative(reading) if reading.phrase != _NONE else None
            whole = alternative is not None and reading.read == len(alternative.ids)
            if alternative is not None and whole and met >> reading.phrase & 1:  # or the word went on
                found.append((place - len(alternative.ids), alternative))
            met = reading.met
            reading = reached[place - 1][reading]
        return found[::-1]

    def _alternative(self, reading: Reading) -> Alternative:
        return self._constraints[reading.phrase][reading.alternative]

    def _beginnings(self, met: int, inside: bool) -> Iterator[tuple[int, int, Alternative]]:
        """What may begin: phrases that are not met, in all ways that do not run together with a word."""
        for phrase, constraint in enumerate(self._constraints):
            before = self._before[phrase]
            if not met >> phrase & 1 and (before == _NONE or met >> before & 1):
                for place, alternative in enumerate(constraint):
                    if not (alternative.opens and inside):
                        yield phrase, place, alternative

    def _done(self, reading: Reading) -> int:
        """What is met if the output ends here."""
        if reading.phrase != _NONE and reading.read == len(self._alternative(reading).ids):
            return reading.met | 1 << reading.phrase
        return reading.met

    def _bank(self, reading: Reading) -> int:
        bank = sum(size for phrase, size in enumerate(self._sizes) if reading.met >> phrase & 1)
        if reading.phrase == _NONE:
            return bank
        whole = self._sizes[reading.phrase]  # of another way, a share as large
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
        """How much less than its cost a phrase takes that begins now."""
        now = min(len(each.ids) + (each.opens and inside) for each in self._constraints[phrase])
        return self._costs[phrase] - now

    def _mattering(self, found: set[Reading]) -> frozenset[Reading]:
        """Without readings from which nothing can be reached that others do not reach too."""
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
