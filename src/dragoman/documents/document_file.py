"""Documents in files and streams, byte for byte."""

import sys
from pathlib import Path

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.files import atomic_write
from dragoman.base.output.members import member_writer
from dragoman.data.corpora.lines import read_chunks
from dragoman.inference.faulty_lines import on_error_of


def read_document(path: Path | None, on_error: str = "stop") -> str:
    """The whole text of a file, .gz, .xz and .zst too, or of the standard input; ends of lines stay as they are.

    on_error: what to do about broken UTF-8, `stop`, or `replace` it by U+FFFD. Raises DataError for a file that is
    missing or unreadable, and for broken UTF-8 with its line.
    """
    if on_error_of(on_error) == "blank":
        raise ConfigError("--on-error blank is for lines, and a document has sentences: use stop or replace")
    data = sys.stdin.buffer.read() if path is None else b"".join(read_chunks(path))
    try:
        return data.decode("utf-8", "strict" if on_error == "stop" else "replace")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path or 'standard input'}, line {number}: broken UTF-8. Convert the text first, or read what is broken "
            "as U+FFFD: --on-error replace"
        ) from None


def check_places(source: Path | None, target: Path | None) -> None:
    """What is cheap to find wrong before a model is loaded. Raises DataError."""
    if source is not None and (source.is_dir() or not source.exists()):
        raise DataError(f"there is no file {source}: check --input")
    if source is not None and target is not None and source.resolve() == target.resolve():
        raise DataError(f"--output {target} is the file to translate, and would be lost: choose another name")


def write_document(text: str, path: Path | None) -> None:
    """To a file, compressed as its name ends, complete or not at all; or to the standard output.

    Raises ResourceError where it cannot be written.
    """
    if path is None:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
    else:
        atomic_write(path, member_writer(path)(text.encode()))
