"""Reading of plain or compressed text files of any size, line by line from start to end."""

import codecs
import difflib
import shlex
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO
from zipfile import BadZipFile

from dragoman.base.errors import DataError
from dragoman.data.files.archives import open_file
from dragoman.data.files.compression import LONGEST_MAGIC, SUFFIXES, decompress, is_compressed
from dragoman.data.files.encoding import (
    LONGEST_MARK,
    Utf8Lines,
    convert_mac_line_ends,
    count_utf8_lines,
    has_mac_line_ends,
    marked_encoding,
    transcode,
)
from dragoman.data.files.recognition import Form, check_form

CHUNK = 1 << 16
LONGEST_LINE = 1 << 24
"""Maximum number of bytes of a line. A file with a longer line is probably not text. Cleaning drops far shorter
lines."""


def open_lines(path: Path, form: Form = "text", check_encoding: bool = True) -> Iterator[str]:
    r"""Yield the lines of a file without line ends. Undecodable bytes become lone surrogates (`surrogateescape`).

    Lines end only at \n, or at \r in files without \n (old Mac OS). A \r before \n and a byte order mark are removed.
    The last line end may be missing. Compression, archives and UTF-16 or UTF-32 with a byte order mark are recognised
    by the first bytes.

    form: expected contents. check_encoding: reject files of which most lines with non-ASCII characters are not UTF-8.
    Raises DataError with the file name if the file is missing, unreadable, truncated, corrupt, or evidently in another
    format or encoding.
    """
    path = Path(path)
    yield from split_lines(read_utf8(path, form, check_encoding), path, check_encoding)


def split_lines(chunks: Iterable[bytes], origin: Path | str, check_encoding: bool = True) -> Iterator[str]:
    """Yield the lines of UTF-8 text as `open_lines` does. origin: name of the text, for messages."""
    counts = Utf8Lines()
    for line in _split(chunks, origin):
        line = line.removesuffix(b"\r")
        try:
            text = line.decode()
        except UnicodeDecodeError:
            counts.add(line, is_valid=False)
            yield line.decode("utf-8", "surrogateescape")
            continue
        if len(text) != len(line):
            counts.valid += 1
        yield text
    if check_encoding:
        counts.check(origin)


def count_lines(path: Path) -> int:
    """Return the number of lines that `open_lines` yields, in any form and encoding. Raises DataError as it does."""
    count, end = 0, b"\n"
    for chunk in read_utf8(Path(path), "any", check_encoding=False):
        count += chunk.count(b"\n")
        end = chunk[-1:] or end
    return count + (end != b"\n")


def read_text(path: Path, form: Form = "text") -> Iterator[str]:
    r"""Yield the text of a file in pieces, with \r\n replaced by \n.

    Files are decoded as by `open_lines`, but without a limit on the length of lines.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    pending = ""
    for chunk in read_utf8(Path(path), form):
        text = pending + decoder.decode(chunk)
        pending = "\r" if text.endswith("\r") else ""  # the next piece may start with \n
        yield text.removesuffix("\r").replace("\r\n", "\n")
    yield pending + decoder.decode(b"", final=True)


def read_utf8(path: Path, form: Form = "text", check_encoding: bool = True) -> Iterator[bytes]:
    """Yield the contents of a text file in pieces, as described at `open_lines`."""
    chunks = read_chunks(path, form)
    head = gather(chunks, size := max(CHUNK, LONGEST_MARK))
    yield from convert_to_utf8(chain([head], chunks), path, form, check_encoding, is_whole=len(head) < size)


def convert_to_utf8(
    chunks: Iterator[bytes], origin: Path | str, form: Form, check_encoding: bool, is_whole: bool
) -> Iterator[bytes]:
    r"""Yield text as UTF-8 without a byte order mark, whose lines end with \n or \r\n.

    chunks: decompressed contents of a file. The form and the encoding are recognised from the first chunk. is_whole:
    whether the first chunk is the whole file. Raises DataError as `open_lines` does.
    """
    head = next(chunks, b"")
    marked = marked_encoding(head)
    if marked is not None:
        mark, codec = marked
        chunks = chain([head[len(mark) :]], chunks)
        if codec != "utf-8":
            chunks = transcode(chunks, codec)
        head = next(chunks, b"")
    start = head[:CHUNK]
    check_form(start, origin, form, is_whole)
    if check_encoding:
        count_utf8_lines(start, is_whole).check(origin, is_whole)
    chunks = chain([head], chunks)
    yield from convert_mac_line_ends(chunks) if has_mac_line_ends(start) else chunks


def read_chunks(path: Path, form: Form | None = None) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file in pieces, not converted to UTF-8.

    The path may continue into a .zip archive, as in rte.zip/rte/rte1_dev.xml. form: expected contents; None: any
    contents, including documents such as .docx. Raises DataError if the file is missing, unreadable, truncated or
    corrupt.
    """
    try:
        file = open_file(path, any_suffix=form is not None)
    except OSError as error:
        raise DataError(_cannot_open(path, error)) from error
    with file:
        chunks = _raw_chunks(path, file)
        head = gather(chunks, LONGEST_MAGIC)
        if head and path.suffix.lower() in SUFFIXES and not is_compressed(head):
            if form is not None:
                check_form(head[:CHUNK], path, form, is_whole=len(head) < CHUNK)
            raise DataError(f"{path} is not a {path.suffix[1:]} file despite its name. Rename or compress it.")
        yield from decompress(chain([head], chunks), path)


def gather(chunks: Iterator[bytes], size: int) -> bytes:
    """Return the first `size` bytes or more; fewer if there are no more."""
    head = b""
    while len(head) < size and (chunk := next(chunks, None)) is not None:
        head += chunk
    return head


def has_broken_utf8(text: str) -> bool:
    """Return whether a line from `open_lines` contains invalid UTF-8."""
    if text.isascii():
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _split(chunks: Iterable[bytes], origin: Path | str) -> Iterator[bytes]:
    rest: list[bytes] = []
    size = number = 0
    for chunk in chunks:
        lines = chunk.split(b"\n")
        if len(lines) > 1:
            yield b"".join([*rest, lines[0]])
            yield from lines[1:-1]
            number += len(lines) - 1
            rest, size = [], 0
        rest.append(lines[-1])
        size += len(lines[-1])
        if size > LONGEST_LINE:
            raise DataError(f"{origin}, line {number + 1}: longer than {LONGEST_LINE} bytes. Is this a text file?")
    if size:
        yield b"".join(rest)


def _raw_chunks(path: Path, file: BinaryIO) -> Iterator[bytes]:
    try:
        while chunk := file.read(CHUNK):
            yield chunk
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror or error}.") from error
    except (BadZipFile, EOFError, zlib.error) as error:  # a member of an archive
        raise DataError(f"{path} is corrupt ({error}). Download or compress it again.") from error


def _cannot_open(path: Path, error: OSError) -> str:
    if isinstance(error, IsADirectoryError):
        return f"{path} is a folder, not a file. Give a file in it."
    if not isinstance(error, FileNotFoundError):
        return f"Cannot read {path}: {error.strerror or error}."
    if path.is_symlink():
        target = path.readlink()
        fetch = f"git annex get {shlex.quote(str(path))}" if "annex" in target.parts else "restore that file"
        return f"{path} is a link to {target}, which does not exist: {fetch}"
    folder = path.parent
    while not folder.is_dir():
        folder = folder.parent
    if folder != path.parent:
        return f"There is no file {path}: the folder {folder} does not contain {path.relative_to(folder).parts[0]}."
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_file())
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.5)
    return f"There is no file {path}" + (f"; did you mean {folder / near[0]}?" if near else ".")
