"""Functions that read lines from files, the standard input or lists."""

import os
import queue
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from io import BufferedReader
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import cast

from dragoman.base.errors import DataError
from dragoman.data.files.compression import decompress
from dragoman.data.files.lines import CHUNK, convert_to_utf8, has_broken_utf8, open_lines, split_lines
from dragoman.data.files.recognition import Form

PATIENCE = 0.05
"""Seconds to wait for another line of a pipe before translating those that have arrived."""


def read_any_lines(path: Path | None, form: Form = "text", check_encoding: bool = False) -> Iterator[str]:
    """Yield the lines of a file (plain or compressed), or of stdin if None, as `open_lines` does.

    Invalid UTF-8 bytes are decoded to lone surrogates. Raises DataError for a missing file, and for a file that is
    evidently not in the expected form.
    """
    return open_lines(path, form, check_encoding) if path is not None else _standard_input(check_encoding)


def read_lines(path: Path | None, form: Form = "text") -> Iterator[str]:
    """Like `read_any_lines`, but also raises DataError, with the line number, for bytes that are not UTF-8."""
    for number, line in enumerate(read_any_lines(path, form, check_encoding=True), start=1):
        if has_broken_utf8(line):
            origin = "standard input" if path is None else path
            raise DataError(
                f"{origin}, line {number}: broken UTF-8. Convert the text first, for example: iconv -f latin1 -t utf-8"
            )
        yield line


def check_text_file(path: Path | None) -> None:
    """Raise DataError, before a model is loaded, if a file is empty or evidently not a text file.

    path: None for the standard input. Only regular files are checked, because a pipe can be read only once.
    """
    if path is not None and path.is_file() and next(open_lines(path, check_encoding=False), None) is None:
        raise DataError(f"{path} is empty: give a file with at least one line")


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


def _standard_input(check_encoding: bool) -> Iterator[str]:
    """Yield lines as soon as they arrive. The contents are recognised from the bytes that arrive first."""
    name = "standard input"
    file = cast(BufferedReader, sys.stdin.buffer)
    chunks = decompress(iter(partial(file.read1, CHUNK), b""), name)
    yield from split_lines(convert_to_utf8(chunks, name, "text", check_encoding, is_whole=False), name, check_encoding)


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
