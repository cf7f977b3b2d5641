"""Atomic writes: after a kill or with a full disk, a file has either its old or its new contents, never a mixture."""

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
    """Replace the file `path` with `content` (text as UTF-8) atomically and durably.

    Raises ResourceError if the disk is full or the path is not writable; the previous file is then intact.
    """
    data = content.encode() if isinstance(content, str) else content
    with atomic_file(path) as temporary, temporary.open("wb") as file:
        file.write(data)


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a path to write to; on exit without an exception, that file durably becomes `path`.

    It is in a temporary folder, so that a writer may create temporary files next to it. Raises ResourceError as
    `atomic_write` does.
    """
    path = Path(path).resolve()  # replace the target of a link, not the link
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
    """Yield a temporary sibling folder; on exit without an exception, it durably becomes `path`.

    Missing parents are created. replace: replace an existing folder, which is deleted with its contents. Raises
    ResourceError as `atomic_write` does, and if `path` is not empty and `replace` is false.
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
    """Yield a temporary folder inside `folder`; on exit, its files replace those with the same names.

    They are replaced one by one, after all are durable, so that only a kill between two renames is visible; the file
    named `last` is replaced last and shows it. Raises ResourceError as `atomic_write` does.
    """
    with _temporary(Path(folder) / "files") as temporary:
        yield temporary
        sync_tree(temporary)
        for file in sorted(temporary.iterdir(), key=lambda file: (file.name == last, file.name)):
            os.replace(file, Path(folder) / file.name)
        sync(Path(folder))


def remove_stale_temporaries(folder: Path) -> list[Path]:
    """Delete partial files of killed processes in `folder`, and return their paths.

    The temporary folders of running processes are locked and are kept.
    """
    removed = []
    for path in sorted(Path(folder).glob(f".*{_SUFFIX}")):
        with contextlib.suppress(OSError), _locked(path):
            shutil.rmtree(path, ignore_errors=True)
            removed.append(path)
    return removed


def remove_folder(path: Path) -> None:
    """Delete a folder atomically: it is renamed to a temporary name first, then emptied."""
    temporary = _sibling(path)
    os.rename(path, temporary)
    shutil.rmtree(temporary, ignore_errors=True)


def sync_tree(folder: Path) -> None:
    """Flush all files and folders below `folder` to disk."""
    for parent, _, files in os.walk(folder, topdown=False):
        for name in files:
            sync(Path(parent) / name)
        sync(Path(parent))


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def unwritable(path: Path, error: OSError) -> ResourceError:
    """Return the error to raise after writing `path` failed with `error`."""
    reason = error.strerror or str(error)
    if error.errno in _FULL:
        return ResourceError(f"cannot write {path}: {reason}. Free some space; the previous contents are intact")
    advice = {
        errno.ENOENT: "create its folder first, or choose another path",
        errno.ENOTDIR: "a parent of this path is a file; choose another path",
        errno.EEXIST: "a file of that name exists; choose another path",
    }.get(error.errno or 0, "choose another path, or change its permissions")
    return ResourceError(f"cannot write {path}: {reason}; {advice}")


@contextlib.contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """Create a locked temporary folder next to `path`; it is deleted at the end with its contents."""
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
            if elsewhere:  # the body failed for another reason than writing here
                raise
            raise unwritable(path, error) from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _exchange(one: Path, other: Path) -> None:
    """Swap two folders atomically (Linux: renameat2, macOS: renamex_np), or in three steps on other systems."""
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
    """Lock a folder until the process ends. Raises OSError if another process holds the lock."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
