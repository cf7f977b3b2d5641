"""`print_results` prints results: as they are, or in a terminal in colours and in lines that fit.

Tables are at most as wide as `base.table.TEXT_WIDTH`; other lines are broken between words.
"""

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence

from dragoman.base.line_breaks import continuation, line_breaks
from dragoman.base.marks import Level, Mark, Marked

_STYLES: dict[Level, str] = {"good": "bold green", "warning": "bold yellow", "bad": "bold red"}
_WARNING = "warning:"


def print_results(*results: object, separator: str = "\n", marks: Iterable[Mark] = ()) -> None:
    """Print results on stdout, one below another.

    marks: those of results that are plain text. Terminals show marks and the word "warning:" in colours, unless
    NO_COLOR is set. Any other output gets the same text as from `print`.
    """
    if not sys.stdout.isatty():
        print(*results, sep=separator, flush=True)
        return
    shown = [*marks, *(mark for each in results if isinstance(each, Marked) for mark in each.marks())]
    text = separator.join(map(str, results))
    _print_lines(text.split("\n"), None if os.environ.get("NO_COLOR") else shown, shutil.get_terminal_size().columns)


def _print_lines(lines: Iterable[str], marks: Sequence[Mark] | None, width: int) -> None:
    """Print lines in a terminal. marks: None for no colours."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        text = Text(line)
        for style, start, end in () if marks is None else _styles(line, marks):
            text.stylize(style, start, end)
        indent = " " * continuation(line, width)
        for number, part in enumerate(text.divide(line_breaks(line, width))):
            part.rstrip()
            console.print(Text(indent if number else "") + part)
    console.file.flush()


def _styles(line: str, marks: Sequence[Mark]) -> Iterator[tuple[str, int, int]]:
    """Yield the style of each coloured part of a line, with its first and last offsets."""
    if line.startswith(_WARNING):
        yield _STYLES["warning"], 0, len(_WARNING)
    for mark in marks:
        place = line.find(mark.line or mark.text)
        if place >= 0:
            start = place + (mark.line or mark.text).rindex(mark.text)
            yield _STYLES[mark.level], start, start + len(mark.text)
