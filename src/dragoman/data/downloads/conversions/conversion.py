"""`Conversion`, the base class of conversions of published files into those that recipes read."""

import gzip
import lzma
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from posixpath import basename
from urllib.parse import unquote

from dragoman.base.errors import DataError
from dragoman.base.settings.config import Config
from dragoman.data.downloads.unpacking import check_space, open_members


@dataclass(frozen=True)
class Original:
    """A downloaded file, as its authors publish it. address: where it came from."""

    address: str
    path: Path

    @property
    def name(self) -> str:
        """The last part of the address."""
        return basename(unquote(self.address))

    def read_text(self, encoding: str = "utf-8") -> str:
        """Return the text of a file. Raises DataError if its encoding is another one."""
        return decode(self.path.read_bytes(), self.address, encoding)

    def members(self, pattern: str) -> Iterator[tuple[str, bytes]]:
        """Yield the names and contents of files in an archive whose names match a pattern (`fnmatch`).

        Raises DataError if the archive is damaged, encrypted or expands too much.
        """
        for name, file in open_members(self.path, pattern, self.address):
            yield name, file.read()

    def member(self, pattern: str) -> str:
        """Return the text of the only file in an archive whose name matches a pattern.

        Raises DataError for a missing member and for text that is not UTF-8.
        """
        for name, content in self.members(pattern):
            return decode(content, f"{name} of {self.address}")
        raise self.changed(f"it does not contain {pattern}")

    def first_lines(self, pattern: str, count: int) -> list[str]:
        """Return the first lines of the only file in an archive whose name matches a pattern, as `member` does."""
        for name, file in open_members(self.path, pattern, self.address):
            return [decode(line, f"{name} of {self.address}").strip() for line in islice(file, count)]
        raise self.changed(f"it does not contain {pattern}")

    def changed(self, reason: str) -> DataError:
        """Return the error for a file that is not as expected."""
        return DataError(f"{self.address} is not as expected: {reason}. It has changed, report it")


class Conversion(Config):
    """A conversion of downloads into the files of a corpus."""

    def names(self) -> tuple[str, ...]:
        """Return the names of the files of the corpus."""
        raise NotImplementedError

    def convert(self, originals: Sequence[Original], folder: Path) -> None:
        """Write the files of the corpus. originals: downloads in the order of the catalogue.

        Raises DataError if a download is damaged or not as expected, and ResourceError if the disk is full.
        """
        raise NotImplementedError


def decode(content: bytes, origin: str, encoding: str = "utf-8") -> str:
    """Return the text of a file. origin: its name for messages. Raises DataError if its encoding is another one."""
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise DataError(f"{origin} is not {encoding.upper()} (byte {error.start}): it has changed, report it") from None


def write_lines(lines: Iterable[str], path: Path) -> None:
    """Write lines to a file, compressed if its name ends in .gz or .xz, such that equal lines become equal files."""
    content = "".join(f"{line}\n" for line in lines).encode()
    check_space(path.parent, len(content), path.name)
    if path.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    elif path.suffix == ".xz":
        content = lzma.compress(content)
    path.write_bytes(content)
