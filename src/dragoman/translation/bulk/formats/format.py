"""`ShardFormat`: how the records of a kind of shard are read, and written with their translations."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from dragoman.base.companion import member_writer
from dragoman.translation.files.faulty_lines import OnError


@dataclass(frozen=True)
class Window:
    """A run of records. first: the number of its first, from 1; texts: one a record; rest: what else is written."""

    first: int
    texts: list[str]
    rest: Any = None


Part = Any
"""What is written of a window, as the format has it: bytes, or a batch of Arrow's."""


class ShardFormat(ABC):
    """A kind of shard. It is sent to the machines that work, so it is a frozen dataclass of plain values."""

    @abstractmethod
    def windows(self, path: Path, size: int, on_error: OnError) -> Iterator[Window]:
        """All records of a shard, `size` in a window but the last.

        on_error: `stop` raises DataError for broken UTF-8; otherwise broken bytes are lone surrogates of
        `surrogateescape` in the texts. Raises DataError, with file and line, for what cannot be read.
        """

    @abstractmethod
    def part(self, window: Window, translations: list[str], name: str) -> Part:
        """The window's records with their translations. name: the output's, whose ending says its compression."""

    @abstractmethod
    def writer(self, source: Path, target: Path) -> AbstractContextManager[Callable[[Part], object]]:
        """What writes one part after another to `target`, the output of the shard `source`."""


class LinesFormat(ShardFormat):
    """A record is a line. Its parts are compressed where they are made, as members of the output."""

    @abstractmethod
    def lines(self, window: Window, translations: list[str]) -> Iterable[str]:
        """What is written of each record, without the line's end."""

    def part(self, window: Window, translations: list[str], name: str) -> bytes:
        """As bytes of the output."""
        text = "".join(f"{line}\n" for line in self.lines(window, translations))
        return member_writer(Path(name))(text.encode())

    @contextmanager
    def writer(self, source: Path, target: Path) -> Iterator[Callable[[Part], object]]:
        """One part after another is the file."""
        with target.open("wb") as file:
            yield file.write
            if not file.tell():  # an empty file of no compressed members would be none of its format
                file.write(member_writer(target)(b""))


def runs(lines: Iterable[Any], size: int) -> Iterator[tuple[int, list[Any]]]:
    """Lists of `size` of them, the last maybe shorter, each with the number of its first, from 1."""
    iterator, first = iter(lines), 1
    while run := list(islice(iterator, size)):
        yield first, run
        first += len(run)
