"""Covering designs with constraints: few runs in which every pair of levels of two factors occurs that can occur."""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import combinations, product
from random import Random

from factors import DEAR, NEEDED, Levels, build, cost, refusal

Level = tuple[str, str]
"""A factor and its level."""
Pair = frozenset[Level]
SIDES = ("encoder", "decoder")
TRIALS = 60
"""Draws of other levels before a pair that goes with no pair of families as they are is refused."""
FEW = 1000
"""From so few pairs on they are packed into runs whole, since a level alone seldom brings one."""
CANDIDATES = 40


@dataclass
class Design:
    """runs: levels asked for; refused: pairs that no run can hold, with what the plainest run with them was told."""

    runs: list[Levels] = field(default_factory=list)
    refused: dict[Pair, str] = field(default_factory=dict)


def pairs_of(levels: Levels, known: dict[str, list[str]]) -> set[Pair]:
    """The pairs of known levels that are in one run."""
    there = [(factor, level) for factor, level in levels.items() if level in known.get(factor, ())]
    return {frozenset(pair) for pair in combinations(there, 2)}


def cover(known: dict[str, list[str]], seed: int = 1, held: Collection[Pair] = ()) -> Design:
    """A design for all pairs of the levels of two factors but those that other runs hold already.

    First a run is looked for that holds each pair: with the levels of the centre beside it, under each pair of
    families, then with others drawn at random. What is found for no pair is refused. Then runs are made greedily
    (Cohen et al. 1997, "The AETG system", section 3): a pair that is left over is taken, and factor by factor the
    level that brings most new pairs beside those chosen before for the time that it costs, without any refused pair;
    of several such candidates the best one that the settings accept. Last, runs that bring nothing alone are dropped.
    """
    maker = _Maker(known, Random(seed))
    design = Design(refused=maker.refused)
    left = set(maker.holders) - set(held)
    while left:
        seed_pair = maker.random.choice(sorted(left, key=sorted))
        made = [maker.candidate(seed_pair, left) for _ in range(CANDIDATES)]
        made.sort(key=lambda levels: -_worth(levels, known, left))
        accepted = (maker.mended(levels, seed_pair) for levels in made)
        levels = next((levels for levels in accepted if levels), None) or maker.grown(maker.holders[seed_pair], left)
        design.runs.append(levels)
        left -= pairs_of(build(levels)[1], known)
    design.runs = _without_idle(design.runs, known, held)
    return design


class _Maker:
    """Finds runs that hold pairs.

    holders: an accepted run for each possible pair; hosts: the pairs of families under which each level exists.
    """

    def __init__(self, known: dict[str, list[str]], random: Random) -> None:
        self.known, self.random = known, random
        self._told: dict[str, str | None] = {}
        sides = product(known.get("encoder", ["transformer"]), known.get("decoder", ["transformer"]))
        self.hosts = {side: _inside(dict(zip(SIDES, side, strict=True))) for side in sides}
        self.holders: dict[Pair, Levels] = {}
        self.refused: dict[Pair, str] = {}
        # what a family refuses by itself is known before two levels are looked for that are in such families only
        first = sorted(known, key=lambda factor: factor not in SIDES)
        everything = [(factor, level) for factor in first for level in known[factor]]
        for one, other in combinations(everything, 2):
            pair = frozenset((one, other))
            if one[0] != other[0] and pair not in self.holders:
                self._look_for(pair)

    def refusal(self, levels: Levels) -> str | None:
        settings = build(levels)[0]
        key = json.dumps(settings, sort_keys=True)
        if key not in self._told:
            self._told[key] = refusal(settings)
        return self._told[key]

    def _alone(self, levels: Levels) -> str | None:
        """As `refusal`, remembered for a level under a pair of families."""
        key = str(levels)
        if key not in self._told:
            self._told[key] = self.refusal(levels)
        return self._told[key]

    def candidate(self, pair: Pair, left: set[Pair]) -> Levels:
        """Levels chosen one after another, each for the most pairs that are left."""
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
                dear = DEAR.get(factor, {}).get(level, 1.0)
                options.append((len(brought & left) / dear, -dear, self.random.random(), (factor, level)))
            for *_, option in sorted(options, reverse=True):
                if self._add(levels, option):
                    break
        return levels

    def _add(self, levels: Levels, *more: Level) -> bool:
        """Add levels if that brings no refused pair."""
        together = {**levels, **dict(more)}
        if any(frozenset((level, other)) in self.refused for level in more for other in together.items()):
            return False
        host = {side: levels[side] for side in SIDES if side in levels}
        if any(self._alone({**host, **NEEDED.get(level[0], {}), **dict((level,))}) is not None for level in more):
            return False
        levels |= dict(more)
        return True

    def mended(self, levels: Levels, pair: Pair) -> Levels | None:
        """The levels, or all but one where they do not go together; None where that does not help."""
        for dropped in (None, *self.random.sample(list(levels), len(levels))):
            rest = {factor: level for factor, level in levels.items() if factor != dropped}
            if pair in pairs_of(build(rest)[1], self.known) and self.refusal(rest) is None:
                return rest
        return None

    def grown(self, levels: Levels, left: set[Pair]) -> Levels:
        """An accepted run with further levels, each kept only if the run is still accepted and loses no pair."""
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
        self.refused[pair] = why or "these never meet in one run"

    def _barred(self, pair: Pair) -> str | None:
        """What a family that the pair would need says against one of its levels; None where some family may hold it."""
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
    """Pairs that are left and in a run, by what the run costs."""
    effective = build(levels)[1]
    return len(pairs_of(effective, known) & left) / cost(effective)


def _inside(host: Levels) -> set[str]:
    """The factors that exist under a pair of families."""
    found = set(build(host)[1])
    return found | {factor for factor, needed in NEEDED.items() if factor in build({**host, **needed})[1]}


def _without_idle(runs: list[Levels], known: dict[str, list[str]], held: Collection[Pair]) -> list[Levels]:
    """Without runs each of whose pairs is in another run too, the poorest for their cost first."""
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
