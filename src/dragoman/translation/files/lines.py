"""Functions that read lines from files, the standard input or lists."""

import os
import queue
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from stat import S_ISREG

from dragoman.base.errors import DataError
from dragoman.data.corpora.lines import LONGEST_LINE, decode_line, has_broken_utf8, open_lines

PATIENCE = 0.05
"""Seconds to wait for another line of a pipe before translating those that have arrived."""


def read_any_lines(path: Path | None) -> Iterator[str]:
    """Yield the lines of a file (plain or compressed), or of stdin if None, split at line feeds only.

    Invalid UTF-8 bytes are decoded to lone surrogates. Raises DataError for a missing file.
    """
    return open_lines(path) if path is not None else _standard_input()


def read_lines(path: Path | None) -> Iterator[str]:
    """Like `read_any_lines`, but also raises DataError, with the line number, for bytes that are not UTF-8."""
    for number, line in enumerate(read_any_lines(path), start=1):
        if has_broken_utf8(line):
            origin = "standard input" if path is None else path
            raise DataError(
                f"{origin}, line {number}: broken UTF-8. Convert the text first, for example: iconv -f latin1 -t utf-8"
            )
        yield line


Lines = str | Path | Sequence[str]
"""A file with one text per line, plain or compressed, or a list of texts."""


def load_lines(lines: Lines) -> list[str]:
    """Return the texts as a list. Raises the same errors as `read_lines`."""
    return list(read_lines(Path(lines))) if isinstance(lines, str | Path) else list(lines)


def name_of(lines: Lines, default: str) -> str:
    """Return a name for messages: the path of a file, or `default` for a list."""
    return str(lines) if isinstance(lines, str | Path) else default


def read_parallel(*named: tuple[str, Lines]) -> list[list[str]]:
    """Return the texts of several parallel inputs. Raises DataError if their numbers of texts differ or are 0."""
    sides = [(name_of(lines, name), load_lines(lines)) for name, lines in named]
    first, texts = sides[0]
    for name, others in sides:
        if len(others) != len(texts):
            raise DataError(
                f"{first} has {len(texts)} lines and {name} has {len(others)}: "
                "line n of one must correspond to line n of the other"
            )
    if not texts:
        raise DataError(f"{first} is empty: at least one line is needed")
    return [texts for _, texts in sides]


def windows(lines: Iterable[str], size: int, path: Path | None) -> Iterator[list[str]]:
    """Yield chunks of at most `size` lines. For a pipe or terminal, a chunk ends early if no further line arrives.

    path: the file that the lines are read from, None for the standard input.
    """
    if path is None and not S_ISREG(os.fstat(sys.stdin.fileno()).st_mode):
        yield from _arriving_windows(lines, size)
        return
    iterator = iter(lines)
    while window := list(islice(iterator, size)):
        yield window


def one_line(text: str) -> str:
    """Replace line breaks with spaces, so that a translation is always one line."""
    return text.replace("\r\n", " ").replace("\n", " ")


def _standard_input() -> Iterator[str]:
    number = 0
    while line := sys.stdin.buffer.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise DataError(f"standard input, line {number}: longer than {LONGEST_LINE} bytes. Is the input text?")
        yield decode_line(line.removesuffix(b"\n"), first=number == 1)


def _arriving_windows(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    arrived: queue.Queue[str | BaseException | None] = queue.Queue(maxsize=2 * size)

    def read() -> None:
        try:
            for line in lines:
                arrived.put(line)
            arrived.put(None)
        except BaseException as error:
            arrived.put(error)

    threading.Thread(target=read, daemon=True).start()
    item: str | BaseException | None = ""
    while isinstance(item, str):
        window: list[str] = []
        timeout = None
        while len(window) < size:
            try:
                item = arrived.get(timeout=timeout)
            except queue.Empty:
                break
            if not isinstance(item, str):
                break
            window.append(item)
            timeout = PATIENCE
        if window:
            yield window
    if isinstance(item, BaseException):
        raise item
