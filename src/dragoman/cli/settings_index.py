"""The stored index of settings, with which a mistake in a setting is reported without importing torch."""

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.base.errors import ResourceError
from dragoman.base.files import atomic_write
from dragoman.base.imports import requested_modules
from dragoman.native.cache import cache_folders, check_owner, create

if TYPE_CHECKING:
    from dragoman.base.settings.index import Index
    from dragoman.base.settings.load import Overrides

_PACKAGE = Path(__file__).resolve().parents[1]


def check_with_index(recipe: Path | None, overrides: "Overrides") -> None:
    """Raise ConfigError for errors that the index finds in settings. The first call builds and stores the index.

    After `--import`, nothing is checked, because the index does not contain the parts that the modules register.
    """
    from dragoman.base.settings.index import check_settings

    if requested_modules():
        return
    check_settings(_load_index() or store_index(), recipe, overrides)


def _load_index() -> "Index | None":
    """Return the stored index, or None if none is stored."""
    name = _file_name()
    for folder in cache_folders():
        path = folder / name
        try:
            check_owner(path)
            index: Index = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, ResourceError):
            continue
        return index
    return None


def store_index() -> "Index":
    """Build, store and return the index of the current settings. A full disk is not an error."""
    from dragoman.base.settings.index import build_index
    from dragoman.tasks.kinds import TASKS

    name, index = _file_name(), build_index({kind: task.run for kind, task in TASKS.items()})
    for folder in cache_folders():
        with suppress(ResourceError, OSError):
            create(folder, is_for_libraries=False)
            for former in folder.glob(f"{name.rpartition('-')[0]}-*.json"):
                former.unlink()
            atomic_write(folder / name, json.dumps(index))
            break
    return index


def _file_name() -> str:
    """Return a file name that depends on the path of the package and changes with every change of the package."""
    place, digest = hashlib.sha256(str(_PACKAGE).encode()), hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        status = path.stat()
        digest.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    return f"settings-{place.hexdigest()[:8]}-{digest.hexdigest()[:16]}.json"
