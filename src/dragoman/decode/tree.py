"""`SearchTree`: every hypothesis that a search has expanded, as data."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Fate(StrEnum):
    """What became of a hypothesis. Those of the first four lived on, the last four were pruned."""

    CONTINUED = "continued"
    LIMIT = "unfinished: longest output"
    STUCK = "unfinished: nothing may follow"
    DONE = "left: sentence done"
    FINISHED = "finished"
    OUTSIDE = "pruned: outside the beam"
    NARROWED = "pruned: the beam has shrunk"
    PASSED = "pruned: passed over"
    FORBIDDEN = "pruned: forbidden"


class Node(NamedTuple):
    """A hypothesis.

    parent: the number of the one that it continues, None for the root, which is the prefix. step: how many tokens
    follow the root; token: the last of them, None for the root. log_probability: of that token, natural, by the model
    alone; total: the sum over all tokens, the prefix's too. score: what it would be ranked by if it ended here. rank:
    its place among the continuations of its sentence in this step, of its group if there are several, from 0; None
    for the root and what is forbidden. group: of the beam, 0 where it is not divided.
    """

    parent: int | None
    step: int
    token: int | None
    log_probability: float
    total: float
    score: float
    rank: int | None
    group: int
    fate: Fate


_FATES = tuple(Fate)
_NONE = -1
_FIELDS = np.dtype(
    [
        ("parent", np.int32),
        ("step", np.int32),
        ("token", np.int32),
        ("log_probability", np.float32),
        ("total", np.float32),
        ("score", np.float64),
        ("rank", np.int32),
        ("group", np.int32),
        ("fate", np.int8),
    ]
)


@dataclass(frozen=True, eq=False)
class SearchTree:
    """Of one sentence: a sequence of nodes, parents first, the root at 0.

    prefix: ids that all of its outputs begin with. It holds what the search looked at: in each step the best
    continuations of a sentence, as many as decide what lives on, and those that would have been among them if no rule
    had forbidden them.
    """

    prefix: tuple[int, ...]
    _nodes: NDArray[np.void]

    @staticmethod
    def of(prefix: tuple[int, ...], nodes: Sequence[Node]) -> "SearchTree":
        """Kept in a tenth of the memory that the nodes take."""
        rows = [
            (
                *(_NONE if value is None else value for value in node[:-1]),
                _FATES.index(node.fate),
            )
            for node in nodes
        ]
        return SearchTree(prefix, np.array(rows, _FIELDS))

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, number: int) -> Node:
        parent, step, token, log_probability, total, score, rank, group, fate = self._nodes[number].item()
        return Node(
            None if parent == _NONE else parent,
            step,
            None if token == _NONE else token,
            log_probability,
            total,
            score,
            None if rank == _NONE else rank,
            group,
            _FATES[fate],
        )

    def __iter__(self) -> Iterator[Node]:
        return (self[number] for number in range(len(self)))

    def path(self, number: int) -> tuple[int, ...]:
        """The ids of a hypothesis, its prefix and its end among them."""
        tokens: list[int] = []
        node = self[number]
        while node.parent is not None:
            assert node.token is not None
            tokens.append(node.token)
            node = self[node.parent]
        return (*self.prefix, *reversed(tokens))

    def ends(self) -> list[int]:
        """The numbers of the hypotheses among which the result was chosen, the best first, finished ones before others.

        In groups the result has some of each; `group` says which are whose.
        """
        kinds = {_FATES.index(fate): fate is not Fate.FINISHED for fate in (Fate.FINISHED, Fate.LIMIT, Fate.STUCK)}
        fates, scores = self._nodes["fate"], self._nodes["score"]
        found = [number for number, fate in enumerate(fates.tolist()) if fate in kinds]
        return sorted(found, key=lambda number: (kinds[int(fates[number])], -float(scores[number])))
