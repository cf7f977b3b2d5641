"""`TextLines`: a text a line, plain or compressed; the output has its translation on the same line."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dragoman.translation.bulk.formats.format import LinesFormat, Window, runs
from dragoman.translation.files.faulty_lines import OnError
from dragoman.translation.files.lines import one_line, read_any_lines, read_lines


@dataclass(frozen=True)
class TextLines(LinesFormat):
    """Lines end as `open_lines` has it."""

    def windows(self, path: Path, size: int, on_error: OnError) -> Iterator[Window]:
        """As `ShardFormat.windows`."""
        read = read_lines if on_error == "stop" else read_any_lines
        return (Window(first, lines) for first, lines in runs(read(path), size))

    def lines(self, window: Window, translations: list[str]) -> Iterator[str]:
        """The translations."""
        return map(one_line, translations)
