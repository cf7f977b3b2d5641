"""Reading of plain or compressed text files of any size, line by line from start to end."""

import codecs
import difflib
import lzma
import zlib
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile

from dragoman.base.errors import DataError
from dragoman.data.corpora.archives import open_file

CHUNK = 1 << 16
LONGEST_LINE = 1 << 24
"""Maximum number of bytes of a line. A file with a longer line is probably not text. Cleaning drops far shorter
lines."""

_GZIP, _XZ, _ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def open_lines(path: Path) -> Iterator[str]:
    r"""Yield the lines of a file without line ends. Undecodable bytes become lone surrogates (`surrogateescape`).

    Lines end only at \n. A preceding \r and a byte order mark at the start of the file are removed. The last \n may be
    missing. Compression (gzip, xz, zstd) is detected from the first bytes. Raises DataError with the file name
    if the file is missing, unreadable, truncated or corrupt.
    """
    path = Path(path)
    for number, line in enumerate(_split(read_chunks(path), path), start=1):
        yield decode_line(line, first=number == 1)


def count_lines(path: Path) -> int:
    """Return the number of lines that `open_lines` yields. Raises DataError as `open_lines` does."""
    count, end = 0, b"\n"
    for chunk in read_chunks(Path(path)):
        count += chunk.count(b"\n")
        end = chunk[-1:] or end
    return count + (end != b"\n")


def read_text(path: Path) -> Iterator[str]:
    r"""Yield the text of a file in pieces, with \r\n replaced by \n.

    Files are decoded as by `open_lines`, but without a limit on the length of lines.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    mark, pending = _BYTE_ORDER_MARK.decode(), ""
    for chunk in read_chunks(Path(path)):
        text = pending + decoder.decode(chunk)
        if text:
            text, mark = text.removeprefix(mark), ""
        pending = "\r" if text.endswith("\r") else ""  # the next piece may start with \n
        yield text.removesuffix("\r").replace("\r\n", "\n")
    yield pending + decoder.decode(b"", final=True)


def read_chunks(path: Path) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file in pieces. Raises DataError as `open_lines` does.

    The path may continue into a .zip archive, as in rte.zip/rte/rte1_dev.xml.
    """
    try:
        file = open_file(path)
    except OSError as error:
        raise DataError(_cannot_open(path, error)) from error
    with file:
        yield from _contents(path, file)


def decode_line(line: bytes, first: bool) -> str:
    r"""Decode a line without its \n. A final \r is removed, and also a byte order mark if the line is the `first`."""
    if first:
        line = line.removeprefix(_BYTE_ORDER_MARK)
    return line.removesuffix(b"\r").decode("utf-8", "surrogateescape")


def has_broken_utf8(text: str) -> bool:
    """Return whether a line from `open_lines` contains invalid UTF-8."""
    if text.isascii():
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _split(chunks: Iterator[bytes], path: Path) -> Iterator[bytes]:
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
            raise DataError(f"{path}, line {number + 1}: longer than {LONGEST_LINE} bytes. Is this a text file?")
    if size:
        yield b"".join(rest)


def _contents(path: Path, file: BufferedReader) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file."""
    try:
        opener = _decompressor(path, file.peek(6)[:6])  # a pipe cannot be rewound
        if opener is None:
            while chunk := file.read(CHUNK):
                yield chunk
        else:
            yield from _decompressed(path, file, opener)
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror or error}.") from error
    except (BadZipFile, EOFError, zlib.error) as error:  # a member of an archive
        raise DataError(_corrupt(path, error)) from error


def _decompressed(path: Path, file: BinaryIO, opener: Callable[[], Any]) -> Iterator[bytes]:
    member: Any = None  # a file may consist of several compressed members
    try:
        while data := file.read(CHUNK):
            while data:
                member = member or opener()
                yield member.decompress(data)
                data, member = (member.unused_data, None) if member.eof else (b"", member)
                if member is None and not data.strip(b"\0"):
                    data = b""  # zeros after the last member are padding
    except Exception as error:
        if isinstance(error, OSError | DataError):
            raise
        raise DataError(_corrupt(path, error)) from error
    if member is not None:
        raise DataError(f"{path} is truncated: its compressed data end early. Download or compress it again.")


def _decompressor(path: Path, head: bytes) -> Callable[[], Any] | None:
    if head.startswith(_GZIP):
        return lambda: zlib.decompressobj(wbits=31)
    if head.startswith(_XZ):
        return lzma.LZMADecompressor
    if head.startswith(_ZSTD):
        import zstandard

        return lambda: zstandard.ZstdDecompressor().decompressobj()
    if head and path.suffix in (".gz", ".xz", ".zst"):
        raise DataError(f"{path} is not a {path.suffix[1:]} file despite its name. Rename or compress it.")
    return None


def _corrupt(path: Path, error: Exception) -> str:
    return f"{path} is corrupt ({error}). Download or compress it again."


def _cannot_open(path: Path, error: OSError) -> str:
    if not isinstance(error, FileNotFoundError):
        return f"Cannot read {path}: {error.strerror or error}."
    folder = path.parent
    while not folder.is_dir():
        folder = folder.parent
    if folder != path.parent:
        return f"There is no file {path}: the folder {folder} does not contain {path.relative_to(folder).parts[0]}."
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_file())
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.5)
    return f"There is no file {path}" + (f"; did you mean {folder / near[0]}?" if near else ".")
