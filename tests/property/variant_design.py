"""Few models in which every two levels occur that can: a covering design over the registry."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from random import Random

from variant_settings import Level, Settings, factors, made, pairs, refusal, registry

from dragoman.base.choices import Choice, Path
from dragoman.base.covering import Design, cover

Fixed = dict[Path, str]
IMPLIED = "no model can hold all that one of both needs and the other"


class Designer:
    """Proposes for a pair one model that holds it, and beside it as many pairs that no model holds yet as will go.

    What does not go together is learned from what the config refuses. impossible: levels that were refused together
    with the reason; companions: levels with another one that made them possible.
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
                    if (above.path, level) in choice.within:
                        self.inside[above, level] += [(self.factors[choice], inner) for inner in choice.levels]
        self.impossible: dict[frozenset[tuple[Path, str]], str] = {}
        self.companions: list[tuple[frozenset[tuple[Path, str]], tuple[Path, str]]] = []

    def propose(self, pair: tuple[Level, Level]) -> Iterator[tuple[Settings, Sequence[Level]]]:
        """One model, or none where there can be none."""
        for host in self.hosts[pair]:
            base = self.possible(host)
            if base is not None:
                settings, chosen = self.filled(base)
                levels = [(self.factors[choice], level) for choice, level in chosen.items()]
                for level in levels:
                    self.left[level] -= set(levels)
                yield settings, levels
                return

    def possible(self, host: Fixed) -> Fixed | None:
        """The host with companions, or None where no single one makes it possible."""
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
                if level != choice.usual and not self.hopeless(trial) and refusal(made(trial)[0]) is None:
                    self.companions.append((frozenset(host.items()), (choice.path, level)))
                    return trial
        self.impossible[frozenset(host.items())] = why
        return None

    def hopeless(self, fixed: Fixed) -> bool:
        """Whether levels among these were refused before."""
        items = set(fixed.items())
        return any(levels <= items for levels in self.impossible)

    def filled(self, base: Fixed) -> tuple[Settings, dict[Choice, str]]:
        """The other choices as they cover most pairs that are left, one after another; what is refused stays usual."""
        wished = self.greedy(base)
        kept: dict[Choice, str] = {}

        def add(some: list[Choice]) -> None:
            nonlocal kept
            trial = {**kept, **{choice: wished[choice] for choice in some}}
            if refusal(made(base, lambda choice: trial.get(choice, choice.usual))[0]) is None:
                kept = trial
            elif len(some) > 1:
                add(some[: len(some) // 2])
                add(some[len(some) // 2 :])

        add([choice for choice, level in wished.items() if choice.path not in base and level != choice.usual])
        return made(base, lambda choice: kept.get(choice, choice.usual))

    def greedy(self, base: Fixed) -> dict[Choice, str]:
        """For each choice the level with the most new pairs, of those that were not refused beside the ones before."""
        fixed = dict(base)
        held = {
            (self.factors[choice], base[choice.path])
            for choice in registry()
            if choice.path in base and all(base.get(path) == level for path, level in choice.within)
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


@cache
def design() -> tuple[Design[Level, Settings], dict[frozenset[tuple[Path, str]], str]]:
    """The design, and the levels that do not go together with the reason. It takes seconds: not for collection."""
    designer = Designer()
    return cover(list(designer.hosts), designer.propose, lambda _: None, candidates=1), designer.impossible
