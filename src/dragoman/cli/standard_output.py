"""`StandardOutput`: where translations go that are wanted at once."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path


class StandardOutput:
    """Lines go out as soon as they are there.

    lines: of input that are done with; counts: what was done about lines by an earlier process, which there is none of.
    """

    def __init__(self) -> None:
        self.lines = 0
        self.counts: Mapping[str, int] = {}

    @property
    def watched(self) -> bool:
        """Whether somebody sees the lines come."""
        return sys.stdout.isatty()

    def follow(self, name: str, lines: Iterable[str], path: Path | None) -> Iterator[str]:
        """The lines of an input: all of them."""
        return iter(lines)

    def write(self, lines: int, texts: Iterable[bytes], counts: Mapping[str, int]) -> None:
        """What was made of so many lines."""
        for text in texts:
            sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
        self.lines += lines
