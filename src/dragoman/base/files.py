"""Atomic writes: a file has its old or its new contents, never a mixture, even after a crash or on a full disk."""

import contextlib
import ctypes
import errno
import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from dragoman.base.errors import ConfigError, DataError, ResourceError

_SUFFIX = ".partial"
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2  # named RENAME_SWAP on macOS
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def atomic_write(path: Path, content: bytes | str) -> None:
    """Replace the file `path` with `content` (text as UTF-8) atomically and durably.

    Raises ResourceError if the disk is full or the path is not writable; the previous file then remains intact.
    """
    data = content.encode() if isinstance(content, str) else content
    with atomic_file(path) as temporary, temporary.open("wb") as file:
        file.write(data)


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a path to write to; on exit without an exception, that file durably becomes `path`.

    The path is in a temporary folder, in which a writer may create further files. Raises ResourceError as
    `atomic_write` does.
    """
    path = Path(path).resolve()  # replace the target of a link, not the link
    if path.exists() and not path.is_file():
        raise ResourceError(f"cannot write {path}: it exists and is not a regular file")
    with _temporary(path, path.parent) as temporary:
        file = temporary / path.name
        yield file
        sync(file)
        os.replace(file, path)
        sync(path.parent)


@contextlib.contextmanager
def atomic_folder(path: Path, replace: bool = False) -> Iterator[Path]:
    """Yield a temporary sibling folder; on exit without an exception, it durably becomes `path`.

    Missing parent folders are created. replace: whether to delete and replace an existing folder. Raises ResourceError
    as `atomic_write` does, and if `path` is not empty and `replace` is False.
    """
    path = Path(path).absolute()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error) from error
    with _temporary(path, path) as temporary:
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

    Once all files are durable, they are renamed one by one, the file named `last` at the end. If the process is killed
    between two renames, that file is the old one, by which readers can detect the mixture. Raises ResourceError as
    `atomic_write` does.
    """
    with _temporary(Path(folder) / "files", Path(folder)) as temporary:
        yield temporary
        sync_tree(temporary)
        for file in sorted(temporary.iterdir(), key=lambda file: (file.name == last, file.name)):
            os.replace(file, Path(folder) / file.name)
        sync(Path(folder))


def run_of(folder: Path) -> Path:
    """Return the folder of the run that wrote a model folder, which may be one of the run's checkpoints."""
    path = folder.resolve()
    return folder if path.parent.name != "checkpoints" else path.parent.parent


def check_new_folder(folder: Path) -> None:
    """Raise ConfigError if `folder` exists, unless it is an empty folder."""
    folder = Path(folder)
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise ConfigError(f"{folder} already exists: choose another --out, or remove it")


def check_new_files(outputs: Mapping[str, Path | None], *inputs: Path | None) -> None:
    """Raise ConfigError if a command would replace a file, and DataError if it is one of its inputs.

    outputs: the files to write, by option name. Empty files, pipes and devices contain nothing that could be lost.
    """
    read = {path.resolve() for path in inputs if path is not None}
    for option, path in outputs.items():
        if path is None or not path.is_file() or not path.stat().st_size:
            continue
        if path.resolve() in read:
            raise DataError(f"{option} {path} would overwrite the file to read: choose another name")
        raise ConfigError(f"{path} already exists: choose another {option}, or delete it")


def remove_stale_temporaries(folder: Path, min_age: float = 0) -> list[Path]:
    """Delete the temporary folders that killed processes left in `folder`, and return their paths.

    Running processes lock their temporary folders, which are not deleted. min_age: age in seconds of the folders that
    are deleted. If other processes write to `folder`, it must be positive, because they lock a folder after its
    creation. Younger folders are not locked either: their writers would find the lock taken.
    """
    removed = []
    for path in sorted(Path(folder).glob(f".*{_SUFFIX}")):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime < min_age:
                continue
            with _locked(path):
                shutil.rmtree(path, ignore_errors=True)
                removed.append(path)
    return removed


def remove_folder(path: Path) -> None:
    """Delete a folder atomically, by renaming it to a temporary name before its contents are deleted."""
    temporary = _sibling_path(path)
    os.rename(path, temporary)
    shutil.rmtree(temporary, ignore_errors=True)


def sync_tree(folder: Path) -> None:
    """Flush `folder` and all files and folders in it to disk."""
    for parent, _, files in os.walk(folder, topdown=False):
        for name in files:
            sync(Path(parent) / name)
        sync(Path(parent))


def sync(path: Path) -> None:
    """Flush a file or the entries of a folder to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def unwritable(path: Path, error: OSError) -> ResourceError:
    """Return the error to raise after writing `path` failed with `error`."""
    reason = error.strerror or str(error)
    if error.errno in _DISK_FULL:
        return ResourceError(f"cannot write {path}: {reason}. Free some space; the previous contents are intact")
    advice = {
        errno.ENOENT: "create its folder first, or choose another path",
        errno.ENOTDIR: "a parent of this path is a file; choose another path",
        errno.EEXIST: "a file of that name exists; choose another path",
    }.get(error.errno or 0, "choose another path, or change its permissions")
    return ResourceError(f"cannot write {path}: {reason}; {advice}")


@contextlib.contextmanager
def _temporary(path: Path, destination: Path) -> Iterator[Path]:
    """Yield a locked temporary folder next to `path`, which is deleted with its contents on exit.

    destination: the folder in which the contents will be; messages of ResourceError name it instead of the temporary
    folder.
    """
    with contextlib.ExitStack() as stack:
        try:
            temporary = _sibling_path(path)
            temporary.mkdir()
            _live.add(temporary)
            stack.enter_context(_locked(temporary))
        except OSError as error:
            raise unwritable(path, error) from error
        try:
            yield temporary
        except ResourceError as error:
            error.args = (str(error).replace(str(temporary), str(destination)),)
            raise
        except OSError as error:
            is_outside = error.filename is not None and str(temporary) not in str(error.filename)
            if is_outside:  # the error was not caused by writing to the temporary folder
                raise
            raise unwritable(path, error) from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            _live.discard(temporary)


_live: set[Path] = set()
"""The temporary folders of this process."""


def remove_live_temporaries() -> None:
    """Delete the temporary folders of this process, which must end immediately afterwards."""
    for folder in tuple(_live):
        shutil.rmtree(folder, ignore_errors=True)


def _exchange(first: Path, second: Path) -> None:
    """Swap two folders atomically (Linux: renameat2, macOS: renamex_np), or in three steps on other systems."""
    library = ctypes.CDLL(None)
    if hasattr(library, "renameat2"):
        failed = library.renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE)
    elif hasattr(library, "renamex_np"):
        failed = library.renamex_np(os.fsencode(first), os.fsencode(second), _RENAME_EXCHANGE)
    else:
        failed = True
    if failed:
        temporary = _sibling_path(second)
        os.rename(second, temporary)
        os.rename(first, second)
        os.rename(temporary, first)


def _sibling_path(path: Path) -> Path:
    """Return a unique temporary path in the same folder."""
    path = Path(path).absolute()
    return path.parent / f".{path.name}.{secrets.token_hex(4)}{_SUFFIX}"


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock a folder within this context. Raises OSError if another process holds the lock."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
