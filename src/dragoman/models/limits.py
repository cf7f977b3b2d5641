"""How long a text a model can read, for those who must know it before they start."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Side = Literal["source", "target"]


@dataclass(frozen=True)
class LengthLimit:
    """One side's. positions: how many tokens its scheme has positions for, None for any number.

    setting: which setting says so.
    """

    side: Side
    positions: int | None
    setting: str

    @property
    def tokens(self) -> int | None:
        """A text's tokens at most: one position goes to the source's end, or the target's beginning."""
        return None if self.positions is None else self.positions - 1

    def exceeded(self, length: int) -> bool:
        """Whether a text of so many tokens is too long."""
        return self.tokens is not None and length > self.tokens

    def describe(self, length: int) -> str:
        """What is wrong with a text of so many tokens, for a message that goes on with what to do."""
        special = "end" if self.side == "source" else "beginning"
        return (
            f"{length} {self.side} tokens, but the model has {self.positions} positions, one of them for the {special} "
            f"of the sentence ({self.setting})"
        )


class LengthLimits(NamedTuple):
    """Of both sides of a model; a sequence of the two, source first."""

    source: LengthLimit
    target: LengthLimit


def first_exceeded(limits: Sequence[LengthLimit], *lengths: int) -> tuple[LengthLimit, int] | None:
    """The first limit that a pair of texts exceeds, with the length that does so."""
    return next(
        ((limit, length) for limit, length in zip(limits, lengths, strict=True) if limit.exceeded(length)), None
    )
