"""A covering design over the registry: few models in which all compatible pairs of levels occur."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from random import Random

from setting_choices import Choice, Path
from variant_settings import Level, Settings, factors, made, pairs, refusal, registry

Fixed = dict[Path, str]
Run = tuple[Settings, frozenset[Level]]


class Designer:
    """Finds for a pair a model that contains it, together with as many uncovered pairs as possible.

    All pairs are covered greedily (Cohen et al. 1997, "The AETG system", section 3).

    Incompatible levels are found by the config's refusals. impossible: levels that were refused together, with the
    reason; companions: levels with another one that made them possible.
    """

    def __init__(self) -> None:
        self.random = Random(1)
        self.hosts, self.factors = pairs(), factors()
        self.left: dict[Level, set[Level]] = defaultdict(set)
        for one, other in self.hosts:
            self.left[one].add(other)
            self.left[other].add(one)
        self.inside: dict[tuple[Choice, str], list[Level]] = defaultdict(list)
        for choice in registry():
            for above in registry():
                for level in above.levels:
                    if (above.path, level) in choice.conditions:
                        self.inside[above, level] += [(self.factors[choice], inner) for inner in choice.levels]
        self.impossible: dict[frozenset[tuple[Path, str]], str] = {}
        self.companions: list[tuple[frozenset[tuple[Path, str]], tuple[Path, str]]] = []

    def run(self, pair: tuple[Level, Level]) -> Run | None:
        """Return a model, or None if there is none."""
        for host in self.hosts[pair]:
            base = self.possible(host)
            if base is not None:
                settings, chosen = self.filled(base)
                held = frozenset((self.factors[choice], level) for choice, level in chosen.items())
                for level in held:
                    self.left[level] -= held
                return settings, held
        return None

    def possible(self, host: Fixed) -> Fixed | None:
        """Return the host with companions, or None if no single one makes it possible."""
        fixed = dict(host)
        if self.hopeless(fixed):
            return None
        for needing, (path, level) in self.companions:
            if needing <= set(fixed.items()):
                fixed.setdefault(path, level)
        settings, chosen = made(fixed)
        why = refusal(settings)
        if why is None:
            return fixed
        for path, level in host.items() if len(host) > 1 else ():
            if len(path) == 1 and self.possible({path: level}) is None:
                return None
        for choice in sorted(chosen, key=lambda choice: len(choice.path)):
            for level in choice.levels if choice.path not in fixed else ():
                trial = {**fixed, choice.path: level}
                if level != choice.default and not self.hopeless(trial) and refusal(made(trial)[0]) is None:
                    self.companions.append((frozenset(host.items()), (choice.path, level)))
                    return trial
        self.impossible[frozenset(host.items())] = why
        return None

    def hopeless(self, fixed: Fixed) -> bool:
        """Return whether levels among these were refused before."""
        items = set(fixed.items())
        return any(levels <= items for levels in self.impossible)

    def filled(self, base: Fixed) -> tuple[Settings, dict[Choice, str]]:
        """Set the other choices one by one to cover the most remaining pairs; refused levels stay at their defaults."""
        wished = self.greedy(base)
        kept: dict[Choice, str] = {}

        def add(some: list[Choice]) -> None:
            nonlocal kept
            trial = {**kept, **{choice: wished[choice] for choice in some}}
            if refusal(made(base, lambda choice: trial.get(choice, choice.default))[0]) is None:
                kept = trial
            elif len(some) > 1:
                add(some[: len(some) // 2])
                add(some[len(some) // 2 :])

        add([choice for choice, level in wished.items() if choice.path not in base and level != choice.default])
        return made(base, lambda choice: kept.get(choice, choice.default))

    def greedy(self, base: Fixed) -> dict[Choice, str]:
        """Return for each choice the level with the most new pairs that was not refused with the earlier ones."""
        fixed = dict(base)
        held = {
            (self.factors[choice], base[choice.path])
            for choice in registry()
            if choice.path in base and all(base.get(path) == level for path, level in choice.conditions)
        }

        def free(choice: Choice) -> str:
            def worth(level: str) -> tuple[bool, float]:
                new = len(self.left[self.factors[choice], level] & held)
                later = sum(len(self.left[inner]) for inner in self.inside[choice, level])
                value = new + 0.01 * later + self.random.random()
                return not self.hopeless({**fixed, choice.path: level}), value

            if choice.path in base:
                return base[choice.path]
            best = max(choice.levels, key=worth)
            fixed[choice.path] = best
            held.add((self.factors[choice], best))
            return best

        return made(base, free)[1]


@dataclass
class Design:
    """runs: models with their levels; refused: pairs that no model can contain.

    impossible: incompatible levels, with the config's message: the reason for the refused pairs.
    """

    runs: list[Run]
    refused: set[tuple[Level, Level]]
    impossible: dict[frozenset[tuple[Path, str]], str]


@cache
def design(most: int | None = None) -> Design:
    """Return the design for all pairs of the registry, which is deterministic. It takes seconds, so not for collection.

    most: number of models to return, in the order of discovery; the first ones contain most of the pairs.
    """
    designer = Designer()
    runs: list[Run] = []
    refused = set()
    for one, other in designer.hosts:
        if len(runs) == most:
            break
        if other in designer.left[one]:
            run = designer.run((one, other))
            if run is None:
                refused.add((one, other))
            else:
                runs.append(run)
    return Design(_without_idle(runs), refused, designer.impossible)


def _without_idle(runs: list[Run]) -> list[Run]:
    """Remove models whose pairs all occur in others."""
    times = Counter(pair for _, held in runs for pair in combinations(sorted(held), 2))
    kept = []
    for settings, held in runs:
        mine = list(combinations(sorted(held), 2))
        if any(times[pair] == 1 for pair in mine):
            kept.append((settings, held))
        else:
            times.subtract(mine)
    return kept
