"""Lines in and lines out, as the verbs that read and write text need them."""

import os
import queue
import sys
import threading
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from stat import S_ISREG

from dragoman.base.errors import DataError
from dragoman.data.corpora.lines import LONGEST_LINE, decode_line, has_broken_utf8, open_lines

PATIENCE = 0.05
"""Seconds to wait for one more line of a pipe before translating what has come."""


def read_lines(path: Path | None) -> Iterator[str]:
    """The lines of a file (plain or compressed), or of stdin without one, split at line feeds only.

    Raises DataError for a missing file and for bytes that are not UTF-8, with the line.
    """
    lines = open_lines(path) if path is not None else _standard_input()
    for number, line in enumerate(lines, start=1):
        if has_broken_utf8(line):
            where = "standard input" if path is None else path
            raise DataError(
                f"{where}, line {number}: broken UTF-8. Convert the text first, for example: iconv -f latin1 -t utf-8"
            )
        yield line


def read_together(*paths: Path) -> list[list[str]]:
    """All lines of files that belong together line by line. Raises DataError when unequally long or empty."""
    sides = [list(read_lines(path)) for path in paths]
    for path, lines in zip(paths, sides, strict=True):
        if len(lines) != len(sides[0]):
            raise DataError(
                f"{paths[0]} has {len(sides[0])} lines and {path} has {len(lines)}: "
                "line n of one must belong to line n of the other"
            )
    if not sides[0]:
        raise DataError(f"{paths[0]} is empty: give files with at least one line")
    return sides


def windows(lines: Iterable[str], size: int, path: Path | None) -> Iterator[list[str]]:
    """Runs of at most `size` lines. From a pipe or a terminal, a run ends early when no further line comes soon."""
    if path is None and not S_ISREG(os.fstat(sys.stdin.fileno()).st_mode):
        yield from _as_they_come(lines, size)
        return
    iterator = iter(lines)
    while window := list(islice(iterator, size)):
        yield window


class StandardOutput:
    """Lines go out as soon as they are there. lines: of input that are done with."""

    def __init__(self) -> None:
        self.lines = 0

    def follow(self, name: str, lines: Iterable[str], path: Path | None) -> Iterator[str]:
        """The lines of an input: all of them."""
        return iter(lines)

    def write(self, lines: int, texts: Iterable[bytes]) -> None:
        """What was made of so many lines."""
        for text in texts:
            sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
        self.lines += lines


def one_line(text: str) -> str:
    """`text` without line feeds, so that a translation never takes more than its line."""
    return text.replace("\r\n", " ").replace("\n", " ")


def _standard_input() -> Iterator[str]:
    number = 0
    while line := sys.stdin.buffer.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise DataError(f"standard input, line {number}: longer than {LONGEST_LINE} bytes; is this text?")
        yield decode_line(line.removesuffix(b"\n"), first=number == 1)


def _as_they_come(lines: Iterable[str], size: int) -> Iterator[list[str]]:
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
