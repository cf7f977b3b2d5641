"""Documents in files and streams, byte for byte."""

import sys
from pathlib import Path

from dragoman.base.companion import member_writer
from dragoman.base.errors import ConfigError, DataError
from dragoman.base.files import atomic_write
from dragoman.data.corpora.lines import read_chunks
from dragoman.documents.formats.format import Content, Format
from dragoman.translation.files.faulty_lines import on_error_of


def read_document(path: Path | None, format: Format[Content], on_error: str = "stop") -> Content:
    """All of a file, .gz, .xz and .zst too, or of the standard input; ends of lines stay as they are.

    on_error: what to do about broken UTF-8, `stop`, or `replace` it by U+FFFD. Raises DataError for a file that is
    missing or unreadable, and for broken UTF-8 with its line.
    """
    if on_error_of(on_error) == "blank":
        raise ConfigError("--on-error blank is for lines, and a document has sentences: use stop or replace")
    data = sys.stdin.buffer.read() if path is None else b"".join(read_chunks(path))
    return format.decoded(data, str(path or "standard input"), on_error)


def check_places(source: Path | None, target: Path | None) -> None:
    """What is cheap to find wrong before a model is loaded. Raises DataError."""
    if source is not None and (source.is_dir() or not source.exists()):
        raise DataError(f"there is no file {source}: check --input")
    if source is not None and target is not None and source.resolve() == target.resolve():
        raise DataError(f"--output {target} is the file to translate, and would be lost: choose another name")


def write_document(content: Content, path: Path | None, format: Format[Content]) -> None:
    """To a file, compressed as its name ends, complete or not at all; or to the standard output.

    Raises ResourceError where it cannot be written.
    """
    data = format.encoded(content)
    if path is None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        atomic_write(path, member_writer(path)(data))
