"""Covering designs: few runs in which every pair of levels of two factors occurs."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice
from typing import Generic, TypeVar

Level = TypeVar("Level", bound=Hashable)
Run = TypeVar("Run")


@dataclass
class Design(Generic[Level, Run]):
    """runs: each with the levels that are in it; refused: pairs that no run can hold, with the reason."""

    runs: list[tuple[Run, frozenset[Level]]] = field(default_factory=list)
    refused: dict[tuple[Level, Level], str] = field(default_factory=dict)


def cover(
    pairs: Sequence[tuple[Level, Level]],
    propose: Callable[[tuple[Level, Level]], Iterator[tuple[Run, Iterable[Level]]]],
    refusal: Callable[[Run], str | None],
    candidates: int = 8,
) -> Design[Level, Run]:
    """A greedy design for `pairs` (Cohen et al. 1997, "The AETG system", section 3, with constraints).

    propose: runs that hold a pair, the plainest one first; refusal: why a run is not possible, or None. Of the first
    `candidates` proposals the possible one with the most new pairs is taken. A pair without a possible proposal is
    refused for the reason that the plainest gives.
    """
    design: Design[Level, Run] = Design()
    left = {frozenset(pair) for pair in pairs}
    for pair in pairs:
        if frozenset(pair) not in left:
            continue
        proposals = [(run, frozenset(levels)) for run, levels in islice(propose(pair), candidates)]
        gains = [{frozenset(each) for each in combinations(levels, 2)} & left for _, levels in proposals]
        for place in sorted(range(len(proposals)), key=lambda place: -len(gains[place])):
            if refusal(proposals[place][0]) is None:
                design.runs.append(proposals[place])
                left -= gains[place]
                break
        else:
            design.refused[pair] = refusal(proposals[0][0]) or "" if proposals else "these never meet in one run"
            left.discard(frozenset(pair))
    return design
