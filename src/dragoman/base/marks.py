"""`Mark`: a part of a result's text that a terminal colours. `Marked` is a result that has them."""

from collections.abc import Iterable
from typing import Literal, NamedTuple, Protocol, runtime_checkable

Level = Literal["good", "warning", "bad"]


class Mark(NamedTuple):
    """A part of a text. level: determines its colour. text: the part. line: the line that contains it; empty: any."""

    level: Level
    text: str
    line: str = ""


@runtime_checkable
class Marked(Protocol):
    """A result whose text has marks. Its text is unaffected."""

    def marks(self) -> Iterable[Mark]:
        """Return the parts of the text that a terminal colours."""
