"""`TreeNode`: a hypothesis of a search tree. `Outcome`: a translation with the parts of its score."""

from typing import Any, NamedTuple

FINISHED, FORBIDDEN, PRUNED = "finished", "pruned: forbidden", "pruned"
"""Fates of hypotheses (docs/reference/search-tree.md), and the start of all reasons for pruning."""


class TreeNode(NamedTuple):
    """A hypothesis; the fields are those of a node in the file of `dragoman translate --tree`.

    piece: the last token, empty for the root.
    """

    parent: int | None
    step: int
    piece: str
    log_probability: float
    total: float
    score: float
    rank: int | None
    group: int
    fate: str


class Outcome(NamedTuple):
    """A translation. node: its node, or None if it is not in the tree. The score is log-probability + penalty."""

    node: int | None
    text: str
    score: float
    log_probability: float

    @property
    def penalty(self) -> float:
        """The part of the score that is not a probability: the length penalty and other terms of the search."""
        return self.score - self.log_probability

    def as_json(self) -> dict[str, Any]:
        """Return the values and the penalty as JSON types."""
        return {**self._asdict(), "penalty": self.penalty}
