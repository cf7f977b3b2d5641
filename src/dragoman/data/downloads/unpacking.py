"""Takes single files out of downloaded archives (.zip, .tar.gz), and writes them, compressed or not.

Names inside an archive never decide where a file is written.
"""

import gzip
import hashlib
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from posixpath import basename
from typing import IO, cast
from zlib import error as ZlibError

from dragoman.base.errors import DataError, ResourceError
from dragoman.data.downloads.transfer import format_size

_MOST_EXPANSION = 100
"""How many times as large as the archive its files may be. Texts become four to ten times as large."""

_BLOCK = 1 << 20


def unpack(archive: Path, folder: Path, name: Callable[[str], str | None], origin: str) -> list[str]:
    """Write files of an archive to a folder; returns their names.

    name: returns the name in the folder for a name in the archive, or None for a file that is not needed. origin: of
    the archive, for messages. Raises DataError if the archive is damaged, encrypted or expands too much, and
    ResourceError if the disk is too small.
    """
    written = []
    with _damage_of(origin), _members(archive) as members:
        limit = _MOST_EXPANSION * archive.stat().st_size
        for member, size, open_member in members:
            target = name(member)
            if target is None:
                continue
            if basename(target) != target or target in written:
                raise DataError(f"{origin} contains several files {target!r}: report it")
            limit -= size
            _check_limit(limit, origin)
            check_space(folder, size, origin)
            with open_member() as source:
                write_text(source, folder / target, compress=target.endswith(".gz") and not member.endswith(".gz"))
            written.append(target)
    return written


def open_members(archive: Path, pattern: str, origin: str) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the names of files in an archive that match a pattern (`fnmatch`), each with its opened file.

    A file is closed before the next one is yielded. origin: of the archive, for messages. Raises DataError if it is
    damaged, encrypted or expands too much.
    """
    limit = _MOST_EXPANSION * archive.stat().st_size
    with _damage_of(origin), _members(archive) as members:
        for member, size, open_member in members:
            if fnmatchcase(member, pattern):
                limit -= size
                _check_limit(limit, origin)
                with open_member() as source:
                    yield member, source


def matching(pattern: str) -> Callable[[str], str | None]:
    """Return a function for `unpack` that keeps the names of files that match a pattern, without their folders."""

    def name(member: str) -> str | None:
        file = basename(member)
        return file if fnmatchcase(member, pattern) and not file.startswith(".") else None

    return name


def check_archive(path: Path, origin: str) -> None:
    """Raise DataError if a file that is named as an archive or a compressed file is damaged."""
    with _damage_of(origin):
        if path.suffix == ".gz":
            text_digest(path, origin)
        elif path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                if (member := archive.testzip()) is not None:
                    raise zipfile.BadZipFile(f"bad checksum of {member}")


def check_space(folder: Path, size: int, origin: str) -> None:
    """Raise ResourceError if a folder's disk has too little space for a file."""
    free = shutil.disk_usage(folder).free
    if size > free:
        raise ResourceError(
            f"a file of {origin} takes {format_size(size)}, but {folder.parent} has {format_size(free)} free: free "
            "some space, or choose another --out"
        )


def write_text(source: IO[bytes], path: Path, compress: bool) -> None:
    """Write a stream to a file. compress: with gzip, such that equal texts become equal files."""
    with ExitStack() as stack:
        file: IO[bytes] = stack.enter_context(path.open("wb"))
        if compress:
            file = cast(IO[bytes], stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0)))
        shutil.copyfileobj(source, file, _BLOCK)


def text_digest(path: Path, origin: str) -> str:
    """Return the SHA-256 of the text of a file, compressed with gzip if its name ends in .gz.

    Raises DataError if it is damaged. origin: of the file, for the message.
    """
    digest = hashlib.sha256()
    with _damage_of(origin), gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _check_limit(limit: int, origin: str) -> None:
    if limit < 0:
        raise DataError(f"{origin} expands to more than {_MOST_EXPANSION} times its size: it is not a corpus")


Member = tuple[str, int, Callable[[], IO[bytes]]]
"""Name, size, and a function that opens the file, to be called before the next member is taken."""


@contextmanager
def _members(archive: Path) -> Iterator[Iterator[Member]]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            yield ((each.filename, each.file_size, _zip_opener(zipped, each)) for each in zipped.infolist())
    else:
        with tarfile.open(archive) as tarred:
            yield ((each.name, each.size, _tar_opener(tarred, each)) for each in tarred if each.isfile())


def _zip_opener(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Callable[[], IO[bytes]]:
    return lambda: archive.open(member)


def _tar_opener(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Callable[[], IO[bytes]]:
    return lambda: cast(IO[bytes], archive.extractfile(member))


@contextmanager
def _damage_of(origin: str) -> Iterator[None]:
    """Raise DataError in place of the errors of damaged archives."""
    try:
        yield
    except (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, ZlibError, EOFError, NotImplementedError) as error:
        reason = str(error).split("\n", 1)[0].rstrip(":")
        raise DataError(f"{origin} is not an archive or is damaged ({reason}): try again") from None
    except RuntimeError as error:  # encrypted members
        raise DataError(f"{origin} cannot be unpacked: {error}") from None
