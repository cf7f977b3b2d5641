"""The folders that compiled libraries and measurements are stored in."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from dragoman.base.errors import ResourceError

PREBUILT = Path(__file__).parent / "prebuilt"
"""The libraries that wheels contain. The folder does not exist in a source tree."""

_MIN_FREE_BYTES = 10_000_000
"""What a compiler and its temporary files need, a few times over."""


def cache_folders() -> Iterator[Path]:
    """Yield the folders to try, in this order, none twice:

    $XDG_CACHE_HOME/dragoman, ~/.cache/dragoman, $XDG_RUNTIME_DIR/dragoman, and one for this user in the folder for
    temporary files. As the XDG Base Directory Specification requires, paths that are not absolute are ignored.
    """
    seen = set()
    for folder in _candidates():
        if folder.is_absolute() and folder not in seen:
            seen.add(folder)
            yield folder


def create(folder: Path, is_for_libraries: bool = True) -> None:
    """Create a cache folder, if it does not exist.

    Raises ResourceError if it cannot be created or written, or if libraries in it could not be loaded.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise ResourceError(f"{folder}: not writable")
        status = os.statvfs(folder)
        if is_for_libraries and status.f_flag & getattr(os, "ST_NOEXEC", 0):
            raise ResourceError(f"{folder}: mounted noexec")
        if is_for_libraries and status.f_bavail * status.f_frsize < _MIN_FREE_BYTES:
            raise ResourceError(f"{folder}: no space left")
        check_owner(folder)
    except OSError as error:
        raise ResourceError(f"{folder}: {error.strerror or error}") from None


def check_owner(path: Path) -> None:
    """Raise ResourceError if other users could have written or replaced a file. Raises OSError."""
    found = path.stat()
    if found.st_uid not in (os.geteuid(), 0):
        raise ResourceError(f"{path}: owned by another user")
    if found.st_mode & stat.S_IWOTH:
        raise ResourceError(f"{path}: writable by all users")


def _candidates() -> Iterator[Path]:
    if base := os.environ.get("XDG_CACHE_HOME"):
        yield Path(base) / "dragoman"
    with suppress(RuntimeError):  # raised without $HOME, if the user has no entry in the list of users
        yield Path.home() / ".cache" / "dragoman"
    if base := os.environ.get("XDG_RUNTIME_DIR"):
        yield Path(base) / "dragoman"
    with suppress(FileNotFoundError):  # raised if no folder for temporary files is writable
        yield Path(tempfile.gettempdir()) / f"dragoman-{os.geteuid()}"
