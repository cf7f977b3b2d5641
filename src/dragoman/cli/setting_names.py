"""The stored names of all settings, with which a misspelt setting is reported without importing torch.

The config classes are defined beside their modules, so importing them imports torch, which takes most of the time
until an error can be reported. Only the names are checked here: an invalid value is reported by the config classes.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.base.errors import ResourceError
from dragoman.base.files import atomic_write
from dragoman.base.imports import requested_modules
from dragoman.native.cache_folders import cache_folders, check_owner, create

if TYPE_CHECKING:
    from dragoman.base.settings.config import Key
    from dragoman.base.settings.load import Overrides

_PACKAGE = Path(__file__).resolve().parents[1]

Names = Mapping[str, Any]
"""The names of the settings in a group, each with those of its own settings; a setting without groups has none."""


def check_setting_names(recipe: Path | None, overrides: "Overrides") -> None:
    """Raise ConfigError for unknown settings, as `load_settings` does. The first call builds and stores the names.

    After `--import` or with `imports` in the recipe, nothing is checked, because modules may register further settings.
    A setting of another kind of its group passes, and so does any content of lists and mappings of groups.
    """
    if requested_modules():
        return
    from dragoman.base.settings.load import describe_unknown, invalid_settings, merge_settings

    settings, origin = merge_settings(recipe, overrides)
    task = settings.get("task")
    kind = task.get("kind", "translation") if isinstance(task, dict) else "translation"
    tasks = _load() or store_setting_names()
    if not isinstance(kind, str) or kind not in tasks or settings.get("imports"):
        return
    unknown = list(_unknown(tasks[kind], settings, ()))
    if unknown:
        every = list(_dotted(tasks[kind], ""))
        raise invalid_settings(
            [describe_unknown(key, value, origin(key), names, every) for key, value, names in unknown]
        )


def _unknown(names: Names, settings: Mapping[str, Any], key: "Key") -> Iterator[tuple["Key", Any, list[str]]]:
    """Yield the key and the value of each unknown setting, and the names of the settings in its group."""
    for name, value in settings.items():
        inner = (*key, name)
        if name not in names:
            yield inner, value, list(names)
        elif names[name] and isinstance(value, dict):
            yield from _unknown(names[name], value, inner)
        elif names[name] and isinstance(value, list):  # of groups, in place of a single one
            for number, each in enumerate(value):
                if isinstance(each, dict):
                    yield from _unknown(names[name], each, (*inner, number))


def _dotted(names: Names, prefix: str) -> Iterator[str]:
    for name, inner in names.items():
        yield f"{prefix}{name}"
        yield from _dotted(inner, f"{prefix}{name}.")


def _load() -> Names | None:
    """Return the stored names by kind of task, or None if none are stored."""
    name = _file_name()
    for folder in cache_folders():
        path = folder / name
        try:
            check_owner(path)
            stored: Names = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, ResourceError):
            continue
        return stored
    return None


def store_setting_names() -> Names:
    """Store and return the names of the current settings by kind of task. A full disk is not an error."""
    from dragoman.base.settings.config import known_settings
    from dragoman.tasks.registry import TASKS

    names: dict[str, Any] = {}
    for kind, task in TASKS.items():
        for setting in known_settings(task.run):
            group = names.setdefault(kind, {})
            for part in setting.split("."):
                group = group.setdefault(part, {})
    name = _file_name()
    for folder in cache_folders():
        with suppress(ResourceError, OSError):
            create(folder, is_for_libraries=False)
            for former in folder.glob(f"{name.rpartition('-')[0]}-*.json"):
                former.unlink()
            atomic_write(folder / name, json.dumps(names))
            break
    return names


def _file_name() -> str:
    """Return a file name that depends on the path of the package and changes with every change of the package."""
    package, digest = hashlib.sha256(str(_PACKAGE).encode()), hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        status = path.stat()
        digest.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    return f"settings-{package.hexdigest()[:8]}-{digest.hexdigest()[:16]}.json"
