"""`ShardFormat`: reads and writes the records of a kind of shard; `TextLines`: one text per line."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from dragoman.base.companion import compressor_for
from dragoman.translation.files.faulty_lines import OnError
from dragoman.translation.files.lines import one_line, read_any_lines, read_lines


@dataclass(frozen=True)
class Window:
    """Consecutive records. first: the number of the first, from 1. texts: one per record. rest: data for the output."""

    first: int
    texts: list[str]
    rest: Any = None


Part = Any
"""The output of a window, as the format writes it: bytes, or an Arrow record batch."""


class ShardFormat(ABC):
    """A kind of shard. Formats are sent to other machines, so they are frozen dataclasses of plain values."""

    @abstractmethod
    def windows(self, path: Path, size: int, on_error: OnError) -> Iterator[Window]:
        """Yield all records of a shard, in windows of `size`; the last may be shorter.

        on_error: `stop` raises DataError for invalid UTF-8; otherwise the texts contain invalid bytes as lone
        surrogates (`surrogateescape`). Raises DataError, with file and line, for unreadable records.
        """

    @abstractmethod
    def part(self, window: Window, translations: list[str], name: str) -> Part:
        """Return records with their translations. name: of the output; its suffix gives the compression."""

    @abstractmethod
    def writer(self, source: Path, target: Path) -> AbstractContextManager[Callable[[Part], object]]:
        """Yield a function that appends a part to `target`, the output of the shard `source`."""


class LinesFormat(ShardFormat):
    """A format whose records are lines. Parts are compressed where they are translated, as members of the output."""

    @abstractmethod
    def lines(self, window: Window, translations: list[str]) -> Iterable[str]:
        """Return the output line of each record, without its newline."""

    def part(self, window: Window, translations: list[str], name: str) -> bytes:
        """Return the lines as compressed bytes."""
        text = "".join(f"{line}\n" for line in self.lines(window, translations))
        return compressor_for(Path(name))(text.encode())

    @contextmanager
    def writer(self, source: Path, target: Path) -> Iterator[Callable[[Part], object]]:
        """Yield a function that appends the bytes of each part."""
        with target.open("wb") as file:
            yield file.write
            if not file.tell():  # without any member, an empty file would not be a valid compressed file
                file.write(compressor_for(target)(b""))


@dataclass(frozen=True)
class TextLines(LinesFormat):
    """One text per line, plain or compressed; the output has its translation on the same line."""

    def windows(self, path: Path, size: int, on_error: OnError) -> Iterator[Window]:
        """See `ShardFormat.windows`."""
        read = read_lines if on_error == "stop" else read_any_lines
        return (Window(first, lines) for first, lines in runs(read(path), size))

    def lines(self, window: Window, translations: list[str]) -> Iterator[str]:
        """Return the translations, each on one line."""
        return map(one_line, translations)


def runs(lines: Iterable[Any], size: int) -> Iterator[tuple[int, list[Any]]]:
    """Yield lists of `size` lines, the last possibly shorter, each with the number of its first line, from 1."""
    iterator, first = iter(lines), 1
    while run := list(islice(iterator, size)):
        yield first, run
        first += len(run)
