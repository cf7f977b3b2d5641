"""Writing so that a kill or a full disk at any moment leaves the old contents or the new ones, never a mixture."""

import contextlib
import ctypes
import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from dragoman.base.errors import ResourceError

_SUFFIX = ".partial"
_HERE, _SWAP = -100, 2  # AT_FDCWD; RENAME_EXCHANGE on Linux, RENAME_SWAP on macOS
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def atomic_write(path: Path, content: bytes | str) -> None:
    """Replace the file `path` by `content` (text is stored as UTF-8) in one step, and make that durable.

    Raises ResourceError when the disk is full or the place cannot be written to; the previous file is then intact.
    """
    data = content.encode() if isinstance(content, str) else content
    with atomic_file(path) as temporary, temporary.open("wb") as file:
        file.write(data)


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Gives a path to write to; on leaving without an exception that file becomes `path`, durably.

    The path lies in a temporary folder, so a writer may make temporaries of its own beside it. Raises ResourceError as
    `atomic_write` does.
    """
    path = Path(path).resolve()  # what a link points to is replaced, not the link
    if path.exists() and not path.is_file():
        raise ResourceError(f"cannot write {path}: it exists and is not a regular file")
    with _temporary(path) as temporary:
        file = temporary / path.name
        yield file
        sync(file)
        os.replace(file, path)
        sync(path.parent)


@contextlib.contextmanager
def atomic_folder(path: Path, replace: bool = False) -> Iterator[Path]:
    """Gives a temporary sibling folder to fill; on leaving without an exception it durably becomes `path`.

    Missing parents are made. replace: take the place of an existing folder, which is deleted with all that it holds.
    Raises ResourceError as `atomic_write` does, and where `path` is not empty and not to be replaced.
    """
    path = Path(path).absolute()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error) from error
    with _temporary(path) as temporary:
        yield temporary
        sync_tree(temporary)
        if replace and path.is_dir():
            _exchange(temporary, path)
        else:
            os.rename(temporary, path)
        sync(path.parent)


@contextlib.contextmanager
def move_into(folder: Path, last: str) -> Iterator[Path]:
    """Gives a temporary folder inside `folder` to fill; on leaving its files replace those of the same name.

    One by one: all are durable before the first is replaced, so only a kill between two renames can be seen; the file
    named `last` goes last and can tell. Raises ResourceError as `atomic_write` does.
    """
    with _temporary(Path(folder) / "files") as temporary:
        yield temporary
        sync_tree(temporary)
        for file in sorted(temporary.iterdir(), key=lambda file: (file.name == last, file.name)):
            os.replace(file, Path(folder) / file.name)
        sync(Path(folder))


def remove_stale_temporaries(folder: Path) -> list[Path]:
    """Delete what killed processes left half-written in `folder`; gives the deleted paths.

    The temporaries of living processes are locked by them and stay.
    """
    removed = []
    for path in sorted(Path(folder).glob(f".*{_SUFFIX}")):
        with contextlib.suppress(OSError), _locked(path):
            shutil.rmtree(path, ignore_errors=True)
            removed.append(path)
    return removed


def remove_folder(path: Path) -> None:
    """Delete a folder in one step as others see it: it is renamed to a temporary first, then emptied."""
    grave = _sibling(path)
    os.rename(path, grave)
    shutil.rmtree(grave, ignore_errors=True)


def sync_tree(folder: Path) -> None:
    """Make every file below `folder`, and the folders themselves, durable."""
    for parent, _, files in os.walk(folder, topdown=False):
        for name in files:
            sync(Path(parent) / name)
        sync(Path(parent))


def sync(path: Path) -> None:
    """Make what a file holds, or what entries a folder has, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def unwritable(path: Path, error: OSError) -> ResourceError:
    """The error to raise when writing `path` has failed with `error`."""
    reason = error.strerror or str(error)
    if error.errno in _FULL:
        return ResourceError(f"cannot write {path}: {reason}. Free some space; what stood there before is untouched")
    advice = {
        errno.ENOENT: "make its folder first, or choose another place",
        errno.ENOTDIR: "a part of this path is a file; choose another place",
        errno.EEXIST: "a file of that name is in the way; choose another place",
    }.get(error.errno or 0, "choose another place, or change the rights to this one")
    return ResourceError(f"cannot write {path}: {reason}; {advice}")


@contextlib.contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """A locked temporary folder beside `path`, gone in the end with what is left in it."""
    with contextlib.ExitStack() as stack:
        try:
            temporary = _sibling(path)
            temporary.mkdir()
            stack.enter_context(_locked(temporary))
        except OSError as error:
            raise unwritable(path, error) from error
        try:
            yield temporary
        except OSError as error:
            elsewhere = error.filename is not None and str(temporary) not in str(error.filename)
            if elsewhere:  # the body failed at something else than writing here
                raise
            raise unwritable(path, error) from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _exchange(one: Path, other: Path) -> None:
    """Swap two folders in one step (Linux: renameat2, macOS: renamex_np); where the system cannot, in three steps."""
    library = ctypes.CDLL(None)
    if hasattr(library, "renameat2"):
        failed = library.renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _SWAP)
    elif hasattr(library, "renamex_np"):
        failed = library.renamex_np(os.fsencode(one), os.fsencode(other), _SWAP)
    else:
        failed = True
    if failed:
        aside = _sibling(other)
        os.rename(other, aside)
        os.rename(one, other)
        os.rename(aside, one)


def _sibling(path: Path) -> Path:
    path = Path(path).absolute()
    return path.parent / f".{path.name}.{secrets.token_hex(4)}{_SUFFIX}"


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the kernel's lock on a folder; it dies with the process. Raises OSError where another holds it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
