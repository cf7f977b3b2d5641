"""Symmetrisation: combines the alignments of both directions into one.

A forward alignment has at most one link per target word, and a reverse alignment at most one per source word. The
intersection of both is precise, and their union has a high recall. The grow heuristics start with the intersection and
add links of the union next to it. Source: Koehn et al. (2003), "Statistical phrase-based translation", section 4.1; the
words that grow may link are those of Moses: at least one of them has no link. alignment-scripts demands this of both
words, which is grow-diag-and.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Literal, cast, get_args

from dragoman.base.errors import ConfigError
from dragoman.statistical.alignment.links import Alignment, sorted_alignment

Symmetrization = Literal[
    "intersection",
    "union",
    "grow",
    "grow-diag",
    "grow-diag-and",
    "grow-diag-final",
    "grow-diag-final-and",
    "forward",
    "reverse",
]
"""The names of the heuristics. forward and reverse keep the alignment of one direction."""

_Link = tuple[int, int]

_ADJACENT: tuple[_Link, ...] = ((-1, 0), (0, -1), (1, 0), (0, 1))
_DIAGONAL: tuple[_Link, ...] = ((-1, -1), (-1, 1), (1, -1), (1, 1))


def symmetrize(forward: Iterable[_Link], reverse: Iterable[_Link], heuristic: str) -> Alignment:
    """Combine the links (source word, target word) of both directions with one of the heuristics of `Symmetrization`.

    Raises ConfigError for an unknown heuristic.
    """
    return heuristic_of(heuristic)(set(forward), set(reverse))


def heuristic_of(name: str) -> Callable[[set[_Link], set[_Link]], Alignment]:
    """Return the function of a heuristic, which combines the sets of links of both directions.

    Raises ConfigError for an unknown heuristic.
    """
    try:
        return _HEURISTICS[cast(Symmetrization, name)]
    except KeyError:
        raise ConfigError(
            f"there is no symmetrisation '{name}': choose one of {', '.join(get_args(Symmetrization))}"
        ) from None


def _grow(forward: set[_Link], reverse: set[_Link], neighbours: tuple[_Link, ...], both: bool = False) -> set[_Link]:
    """Add links of the union that are next to a link and whose source or target word has no link.

    both: both words must have no link. The links of the union are visited in order, and passes are repeated until no
    link is added.
    """
    links = forward & reverse
    candidates = sorted((forward | reverse) - links)
    sources, targets = {i for i, _ in links}, {j for _, j in links}
    is_growing = True
    while is_growing and candidates:
        is_growing = False
        remaining = []
        for i, j in candidates:
            has_source, has_target = i in sources, j in targets
            if (has_source and has_target) or (both and (has_source or has_target)):
                continue
            if any((i + step_i, j + step_j) in links for step_i, step_j in neighbours):
                links.add((i, j))
                sources.add(i)
                targets.add(j)
                is_growing = True
            else:
                remaining.append((i, j))
        candidates = remaining
    return links


def _final(links: set[_Link], directions: Iterable[set[_Link]], both: bool) -> set[_Link]:
    """Add the links of each direction whose source or target word has no link. both: both words must have no link."""
    sources, targets = {i for i, _ in links}, {j for _, j in links}
    for direction in directions:
        for i, j in sorted(direction):
            has_source, has_target = i in sources, j in targets
            if (not has_source and not has_target) if both else not (has_source and has_target):
                links.add((i, j))
                sources.add(i)
                targets.add(j)
    return links


def _grow_diag(forward: set[_Link], reverse: set[_Link], both: bool = False) -> set[_Link]:
    return _grow(forward, reverse, _ADJACENT + _DIAGONAL, both)


_HEURISTICS: Mapping[Symmetrization, Callable[[set[_Link], set[_Link]], Alignment]] = MappingProxyType(
    {
        "intersection": lambda forward, reverse: sorted_alignment(forward & reverse),
        "union": lambda forward, reverse: sorted_alignment(forward | reverse),
        "grow": lambda forward, reverse: sorted_alignment(_grow(forward, reverse, _ADJACENT)),
        "grow-diag": lambda forward, reverse: sorted_alignment(_grow_diag(forward, reverse)),
        "grow-diag-and": lambda forward, reverse: sorted_alignment(_grow_diag(forward, reverse, both=True)),
        "grow-diag-final": lambda forward, reverse: sorted_alignment(
            _final(_grow_diag(forward, reverse), (forward, reverse), both=False)
        ),
        "grow-diag-final-and": lambda forward, reverse: sorted_alignment(
            _final(_grow_diag(forward, reverse), (forward, reverse), both=True)
        ),
        "forward": lambda forward, _: sorted_alignment(forward),
        "reverse": lambda _, reverse: sorted_alignment(reverse),
    }
)
