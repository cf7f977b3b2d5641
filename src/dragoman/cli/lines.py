"""Lines in and lines out, as the verbs that read and write text need them."""

import os
import queue
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

from dragoman.base.errors import DataError, ResourceError
from dragoman.data.readers import open_lines

PATIENCE = 0.05
"""Seconds to wait for one more line of a pipe before translating what has come."""


def read_lines(path: Path | None) -> Iterator[str]:
    """The lines of a file (plain or compressed), or of stdin without one, split at line feeds only.

    Raises DataError for a missing file and for bytes that are not UTF-8, with the line.
    """
    raw = open_lines(path) if path is not None else iter(sys.stdin.buffer)
    for number, line in enumerate(raw, start=1):
        try:
            yield line.decode("utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            where = "standard input" if path is None else path
            raise DataError(
                f"{where}, line {number}: not UTF-8 (byte {error.start} is 0x{line[error.start]:02x}). "
                "Convert the file, for example: iconv -f latin1 -t utf-8"
            ) from None


def windows(lines: Iterable[str], size: int, path: Path | None) -> Iterator[list[str]]:
    """Runs of at most `size` lines. From a pipe or a terminal, a run ends early when no further line comes soon."""
    if path is not None or S_ISREG(os.fstat(sys.stdin.fileno()).st_mode):
        iterator = iter(lines)
        while window := list(islice(iterator, size)):
            yield window
        return
    yield from _as_they_come(lines, size)


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
    end: str | BaseException | None = ""
    while isinstance(end, str):
        window: list[str] = []
        timeout = None
        while len(window) < size:
            try:
                end = arrived.get(timeout=timeout)
            except queue.Empty:
                break
            if not isinstance(end, str):
                break
            window.append(end)
            timeout = PATIENCE
        if window:
            yield window
    if isinstance(end, BaseException):
        raise end


@contextmanager
def output(path: Path | None) -> Iterator[BinaryIO]:
    """stdout, or a file that takes its name only when it is complete."""
    if path is None:
        yield sys.stdout.buffer
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise ResourceError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def one_line(text: str) -> str:
    """`text` without line feeds, so that a translation never takes more than its line."""
    return text.replace("\r\n", " ").replace("\n", " ")


def read_sides(first: Path, second: Path) -> tuple[list[str], list[str]]:
    """All lines of two files that belong together. Raises DataError when they are empty or not equally long."""
    one, other = list(read_lines(first)), list(read_lines(second))
    if len(one) != len(other):
        raise DataError(f"{first} has {len(one)} lines and {second} has {len(other)}: line n of one belongs to line n of the other")
    if not one:
        raise DataError(f"{first} and {second} are empty: there is nothing to work on")
    return one, other
