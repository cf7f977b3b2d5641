"""Covering designs with constraints: a small set of runs that contains every possible pair of levels of two factors."""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import combinations, product
from random import Random

from factors import LEVEL_COSTS, NEEDED, Levels, build, cost, refusal

Level = tuple[str, str]
"""A factor and its level."""
Pair = frozenset[Level]
SIDES = ("encoder", "decoder")
TRIALS = 60
"""Random draws of other levels before a pair is refused."""
FEW = 1000
"""With this many pairs left or fewer, whole pairs are added to runs, because single levels seldom add one."""
CANDIDATES = 40


@dataclass
class Design:
    """A design. runs: levels; refused: pairs that no run can contain, with the error of the simplest run."""

    runs: list[Levels] = field(default_factory=list)
    refused: dict[Pair, str] = field(default_factory=dict)


def pairs_of(levels: Levels, known: dict[str, list[str]]) -> set[Pair]:
    """Return the pairs of known levels in a run."""
    there = [(factor, level) for factor, level in levels.items() if level in known.get(factor, ())]
    return {frozenset(pair) for pair in combinations(there, 2)}


def cover(known: dict[str, list[str]], seed: int = 1, held: Collection[Pair] = ()) -> Design:
    """Return a design for all pairs of the levels of two factors, except those in other runs.

    First, a run is searched for each pair: with the levels of the centre for the other factors, under each pair of
    families, then with randomly drawn levels. Pairs without a run are refused. Then runs are built greedily (Cohen et
    al. 1997, "The AETG system", section 3): starting with a remaining pair, factor by factor the level is added that
    contributes most new pairs relative to its cost, without any refused pair; the best of several candidates that the
    settings accept is kept. Finally, redundant runs are removed.
    """
    maker = _Maker(known, Random(seed))
    design = Design(refused=maker.refused)
    left = set(maker.holders) - set(held)
    while left:
        seed_pair = maker.random.choice(sorted(left, key=sorted))
        made = [maker.candidate(seed_pair, left) for _ in range(CANDIDATES)]
        made.sort(key=lambda levels: -_worth(levels, known, left))
        accepted = (maker.repaired(levels, seed_pair) for levels in made)
        levels = next((levels for levels in accepted if levels), None) or maker.grown(maker.holders[seed_pair], left)
        design.runs.append(levels)
        left -= pairs_of(build(levels)[1], known)
    design.runs = _without_idle(design.runs, known, held)
    return design


class _Maker:
    """Finds runs that contain pairs.

    holders: an accepted run for each possible pair; hosts: the pairs of families under which each level exists.
    """

    def __init__(self, known: dict[str, list[str]], random: Random) -> None:
        self.known, self.random = known, random
        self._refusals: dict[str, str | None] = {}
        sides = product(known.get("encoder", ["transformer"]), known.get("decoder", ["transformer"]))
        self.hosts = {side: _inside(dict(zip(SIDES, side, strict=True))) for side in sides}
        self.holders: dict[Pair, Levels] = {}
        self.refused: dict[Pair, str] = {}
        # levels that a family refuses are known before pairs of levels of such families are searched
        first = sorted(known, key=lambda factor: factor not in SIDES)
        everything = [(factor, level) for factor in first for level in known[factor]]
        for one, other in combinations(everything, 2):
            pair = frozenset((one, other))
            if one[0] != other[0] and pair not in self.holders:
                self._look_for(pair)

    def refusal(self, levels: Levels) -> str | None:
        settings = build(levels)[0]
        key = json.dumps(settings, sort_keys=True)
        if key not in self._refusals:
            self._refusals[key] = refusal(settings)
        return self._refusals[key]

    def _alone(self, levels: Levels) -> str | None:
        """Return `refusal`, cached for a level under a pair of families."""
        key = str(levels)
        if key not in self._refusals:
            self._refusals[key] = self.refusal(levels)
        return self._refusals[key]

    def candidate(self, pair: Pair, left: set[Pair]) -> Levels:
        """Build a run level by level, each contributing the most remaining pairs."""
        holder = self.holders[pair]
        held = build(holder)[1]
        hosts = [host for host, inside in self.hosts.items() if self._may_host(host, inside, pair)]
        host = self.random.choice(hosts) if hosts else (held.get("encoder", ""), held.get("decoder", ""))
        fixed = {side: level for side, level in zip(SIDES, host, strict=True) if side in self.known}
        levels: Levels = {**fixed, **dict(pair)}
        inside = self.hosts.get(host, set())
        if len(left) <= FEW:
            for other in self.random.sample(sorted(left, key=sorted), len(left)):
                if all(factor in inside and levels.get(factor, level) == level for factor, level in other):
                    self._add(levels, *other)
        order = [factor for factor in self.known if factor in inside and factor not in levels]
        self.random.shuffle(order)
        for factor in order:
            options = []
            for level in self.known[factor]:
                brought = {frozenset(((factor, level), other)) for other in levels.items()}
                level_cost = LEVEL_COSTS.get(factor, {}).get(level, 1.0)
                options.append((len(brought & left) / level_cost, -level_cost, self.random.random(), (factor, level)))
            for *_, option in sorted(options, reverse=True):
                if self._add(levels, option):
                    break
        return levels

    def _add(self, levels: Levels, *more: Level) -> bool:
        """Add levels if this adds no refused pair."""
        together = {**levels, **dict(more)}
        if any(frozenset((level, other)) in self.refused for level in more for other in together.items()):
            return False
        host = {side: levels[side] for side in SIDES if side in levels}
        if any(self._alone({**host, **NEEDED.get(level[0], {}), **dict((level,))}) is not None for level in more):
            return False
        levels |= dict(more)
        return True

    def repaired(self, levels: Levels, pair: Pair) -> Levels | None:
        """Return the levels, or all but one if they are incompatible; None if that does not help."""
        for dropped in (None, *self.random.sample(list(levels), len(levels))):
            rest = {factor: level for factor, level in levels.items() if factor != dropped}
            if pair in pairs_of(build(rest)[1], self.known) and self.refusal(rest) is None:
                return rest
        return None

    def grown(self, levels: Levels, left: set[Pair]) -> Levels:
        """Extend an accepted run by levels, each kept only if the run is still accepted and loses no pair."""
        kept = pairs_of(build(levels)[1], self.known) & left
        for factor in self.random.sample(list(self.known), len(self.known)):
            level = self.random.choice(self.known[factor])
            more = {**levels, factor: level}
            held = pairs_of(build(more)[1], self.known) & left
            if factor not in levels and held > kept and self.refusal(more) is None:
                levels, kept = more, held
        return levels

    def _may_host(self, host: tuple[str, str], inside: set[str], pair: Pair) -> bool:
        here = set(zip(SIDES, host, strict=True))
        return (
            {factor for factor, _ in pair} <= inside
            and all(level in here for level in pair if level[0] in SIDES)
            and not any(frozenset((level, side)) in self.refused for level in pair for side in here)
        )

    def _look_for(self, pair: Pair) -> None:
        why = self._barred(pair)
        for levels in self._trials(pair):
            held = pairs_of(build(levels)[1], self.known)
            if pair not in held:
                continue
            told = self.refusal(levels)
            if told is None:
                for each in held:
                    self.holders.setdefault(each, levels)
                    self.refused.pop(each, None)
                return
            why = why or told
        self.refused[pair] = why or "these never occur in one run"

    def _barred(self, pair: Pair) -> str | None:
        """Return the error of a level of the pair under every family that it needs; None if one may accept it."""
        inside = [host for host, factors in self.hosts.items() if {factor for factor, _ in pair} <= factors]
        if any(self._may_host(host, self.hosts[host], pair) for host in inside):
            return None
        sides = [
            frozenset((level, side)) for level in pair for host in inside for side in zip(SIDES, host, strict=True)
        ]
        return next((self.refused[each] for each in sides if each in self.refused), None)

    def _trials(self, pair: Pair) -> Iterator[Levels]:
        needed = {key: level for factor, _ in pair for key, level in NEEDED.get(factor, {}).items()}
        hosts = [host for host, inside in self.hosts.items() if self._may_host(host, inside, pair)]
        for trial in range(len(hosts) + TRIALS if hosts else 0):
            host = hosts[trial] if trial < len(hosts) else self.random.choice(hosts)
            inside = sorted(self.hosts[host] & set(self.known))
            count = 0 if trial < len(hosts) else self.random.randint(1, 4)
            drawn = {
                factor: self.random.choice(self.known[factor])
                for factor in self.random.sample(inside, min(count, len(inside)))
            }
            yield {**drawn, **dict(zip(SIDES, host, strict=True)), **needed, **dict(pair)}


def _worth(levels: Levels, known: dict[str, list[str]], left: set[Pair]) -> float:
    """Return the number of remaining pairs of a run, relative to its cost."""
    effective = build(levels)[1]
    return len(pairs_of(effective, known) & left) / cost(effective)


def _inside(host: Levels) -> set[str]:
    """Return the factors that exist under a pair of families."""
    found = set(build(host)[1])
    return found | {factor for factor, needed in NEEDED.items() if factor in build({**host, **needed})[1]}


def _without_idle(runs: list[Levels], known: dict[str, list[str]], held: Collection[Pair]) -> list[Levels]:
    """Remove runs whose pairs all occur in other runs, the least useful for their cost first."""
    effective = [build(levels)[1] for levels in runs]
    holds = [pairs_of(levels, known) for levels in effective]
    counts: dict[Pair, int] = dict.fromkeys(held, 1)
    for pairs in holds:
        for pair in pairs:
            counts[pair] = counts.get(pair, 0) + 1
    kept = set(range(len(runs)))
    for place in sorted(kept, key=lambda place: len(holds[place]) / cost(effective[place])):
        if all(counts[pair] > 1 for pair in holds[place]):
            kept.remove(place)
            for pair in holds[place]:
                counts[pair] -= 1
    return [runs[place] for place in sorted(kept)]
