"""`ShardFormat`: reads and writes the records of shards; `TextLines`: the format with one text per line."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from dragoman.base.companion import compressor_for
from dragoman.data.corpora.inputs import one_line, read_any_lines, read_lines
from dragoman.inference.translation.files.faulty_lines import OnError


@dataclass(frozen=True)
class Window:
    """Consecutive records. first: number of the first record, from 1. texts: one text per record. rest: further data
    that the format needs for the output.
    """

    first: int
    texts: list[str]
    rest: Any = None


Part = Any
"""The output of a window: bytes or an Arrow record batch, depending on the format."""


class ShardFormat(ABC):
    """A file format of shards. Formats are sent to other machines, so they are frozen dataclasses of plain values."""

    @abstractmethod
    def windows(self, path: Path, size: int, on_error: OnError) -> Iterator[Window]:
        """Yield all records of a shard, in windows of `size` records. The last window may be shorter.

        on_error: `stop` raises DataError for invalid UTF-8; with other values, invalid bytes become lone surrogates
        (`surrogateescape`). Raises DataError, with file and line, for unreadable records.
        """

    @abstractmethod
    def part(self, window: Window, translations: list[str], name: str) -> Part:
        """Return the records with their translations. name: the output file; its suffix sets the compression."""

    @abstractmethod
    def writer(self, source: Path, target: Path) -> AbstractContextManager[Callable[[Part], object]]:
        """Yield a function that appends a part to `target`, the output of the shard `source`."""


class LinesFormat(ShardFormat):
    """A format whose records are lines. Each actor compresses its parts, which become members of the output file."""

    @abstractmethod
    def lines(self, window: Window, translations: list[str]) -> Iterable[str]:
        """Return the output line of each record, without its newline."""

    def part(self, window: Window, translations: list[str], name: str) -> bytes:
        """Return the lines as compressed bytes."""
        text = "".join(f"{line}\n" for line in self.lines(window, translations))
        return compressor_for(Path(name))(text.encode())

    @contextmanager
    def writer(self, source: Path, target: Path) -> Iterator[Callable[[Part], object]]:
        """Yield a function that appends one part to the target file."""
        with target.open("wb") as file:
            yield file.write
            if not file.tell():  # a compressed file without members would be invalid
                file.write(compressor_for(target)(b""))


@dataclass(frozen=True)
class TextLines(LinesFormat):
    """One text per line, plain or compressed. Line n of the output is the translation of line n."""

    def windows(self, path: Path, size: int, on_error: OnError) -> Iterator[Window]:
        """See `ShardFormat.windows`."""
        read = read_lines if on_error == "stop" else read_any_lines
        return (Window(first, lines) for first, lines in numbered_chunks(read(path), size))

    def lines(self, window: Window, translations: list[str]) -> Iterator[str]:
        """Return the translations, each on one line."""
        return map(one_line, translations)


def numbered_chunks(lines: Iterable[Any], size: int) -> Iterator[tuple[int, list[Any]]]:
    """Yield lists of `size` lines, each with the number of its first line, from 1. The last list may be shorter."""
    iterator, first = iter(lines), 1
    while chunk := list(islice(iterator, size)):
        yield first, chunk
        first += len(chunk)
