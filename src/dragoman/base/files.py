"""Writing so that a kill or a full disk at any moment leaves the old contents or the new ones, never a mixture."""

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from dragoman.base.errors import ResourceError

_SUFFIX = ".partial"
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
    """Gives a temporary sibling to fill; on leaving without an exception it becomes the file `path`, durably.

    Raises ResourceError as `atomic_write` does.
    """
    path = Path(path).resolve()  # what a link points to is replaced, not the link
    if path.exists() and not path.is_file():
        raise ResourceError(f"cannot write {path}: it exists and is not a regular file")
    with _temporary(path, folder=False) as temporary:
        yield temporary
        _sync(temporary)
        os.replace(temporary, path)
        _sync(path.parent)


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Gives a temporary sibling folder to fill; on leaving without an exception it durably becomes `path`.

    Missing parents are made. Raises ResourceError as `atomic_write` does, and where `path` exists and is not empty: a
    folder cannot be replaced in one step, so choose a new name or fill the folder with `move_into`.
    """
    with _temporary(Path(path), folder=True) as temporary:
        yield temporary
        sync_tree(temporary)
        os.rename(temporary, path)
        _sync(Path(path).absolute().parent)


@contextlib.contextmanager
def move_into(folder: Path, last: str) -> Iterator[Path]:
    """Gives a temporary folder inside `folder` to fill; on leaving its files replace those of the same name.

    One by one: all are durable before the first is replaced, so only a kill between two renames can be seen; the file
    named `last` goes last and can tell. Raises ResourceError as `atomic_write` does.
    """
    with _temporary(Path(folder) / "files", folder=True) as temporary:
        yield temporary
        sync_tree(temporary)
        for file in sorted(temporary.iterdir(), key=lambda file: (file.name == last, file.name)):
            os.replace(file, Path(folder) / file.name)
        _sync(Path(folder))


def remove_stale_temporaries(folder: Path) -> list[Path]:
    """Delete what killed processes left half-written in `folder`; gives the deleted paths.

    The temporaries of living processes are locked by them and stay.
    """
    removed = []
    for path in sorted(Path(folder).glob(f".*{_SUFFIX}")):
        with contextlib.suppress(OSError), _locked(path):
            _remove(path)
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
            _sync(Path(parent) / name)
        _sync(Path(parent))


def unwritable(path: Path, error: OSError) -> ResourceError:
    """The error to raise when writing `path` has failed with `error`."""
    reason = error.strerror or str(error)
    if error.errno in _FULL:
        return ResourceError(f"cannot write {path}: {reason}. Free some space; what stood there before is untouched")
    return ResourceError(f"cannot write {path}: {reason}")


@contextlib.contextmanager
def _temporary(path: Path, folder: bool) -> Iterator[Path]:
    """A locked temporary sibling of `path`, removed when the body fails."""
    with contextlib.ExitStack() as stack:
        try:
            if folder:
                path.parent.mkdir(parents=True, exist_ok=True)
            temporary = _sibling(path)
            temporary.mkdir() if folder else temporary.touch(exist_ok=False)
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
            _remove(temporary)


def _sibling(path: Path) -> Path:
    path = Path(path).absolute()
    return path.parent / f".{path.name}.{secrets.token_hex(4)}{_SUFFIX}"


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the kernel's lock on a file or folder; it dies with the process. Raises OSError where another holds it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
