"""Modules of users that register own parts: `imports` of a recipe, `dragoman --import`, and DRAGOMAN_IMPORT."""

import os
import sys
import traceback
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from dragoman.base.errors import ConfigError

VARIABLE = "DRAGOMAN_IMPORT"
"""The environment variable that names modules to import, separated by commas."""


def import_modules(names: Iterable[str], origin: str) -> None:
    """Import modules, each named as in Python (`package.module`) or by its file (`folder/module.py`).

    A file is imported as the module of its name without `.py`, once per process. origin: what names the modules, for
    messages. Raises ConfigError for a module that is not found, that fails, or whose name another module has.
    """
    for name in names:
        try:
            _import_file(Path(name)) if name.endswith(".py") else import_module(name)
        except ConfigError as error:
            raise ConfigError(f"{error} ({origin})") from None
        except ModuleNotFoundError as error:
            if error.name is not None and name.split(".")[0] == error.name.split(".")[0]:
                raise ConfigError(
                    f"there is no module {name} ({origin}): install its package, add its folder to PYTHONPATH, or name "
                    "the file, as in own.py"
                ) from None
            raise ConfigError(f"{name} cannot be imported ({origin}): {_cause(error)}") from error
        except Exception as error:  # of the user's code
            raise ConfigError(f"{name} cannot be imported ({origin}): {_cause(error)}") from error


def import_requested_modules() -> None:
    """Import the modules that DRAGOMAN_IMPORT names. Raises the same errors as `import_modules`."""
    import_modules(requested_modules(), f"the environment variable {VARIABLE}")


def requested_modules() -> list[str]:
    """Return the names of modules in DRAGOMAN_IMPORT, which `dragoman --import` also sets."""
    return [name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name.strip()]


def missing_modules(settings: Mapping[str, Any]) -> list[str]:
    """Return the modules in `imports` of a model folder's settings that have not been imported in this process."""
    names = settings.get("imports") or ()
    return [name for name in names if isinstance(name, str) and _module_name(name) not in sys.modules]


def advice(names: Iterable[str]) -> str:
    """Return the advice for modules that are not imported, to be appended to what needs them."""
    listed = list(names)
    options = " ".join(f"--import {name}" for name in listed)
    return (
        f"needs own code, which is not loaded unasked: dragoman {options} …, or {VARIABLE}={','.join(listed)}, or in "
        f"Python import {', '.join(map(_module_name, listed))}"
    )


def _module_name(name: str) -> str:
    return Path(name).stem if name.endswith(".py") else name


def _import_file(path: Path) -> None:
    name = path.stem
    if name in sys.modules:
        loaded = getattr(sys.modules[name], "__file__", None)
        if loaded is None or Path(loaded).resolve() != path.resolve():
            raise ConfigError(f"{path} has the name of another module, {loaded or name}: rename the file")
        return
    if not path.is_file():
        raise ConfigError(f"the module {path} does not exist")
    specification = spec_from_file_location(name, path)
    assert specification is not None and specification.loader is not None
    module = sys.modules[name] = module_from_spec(specification)
    try:
        specification.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def _cause(error: Exception) -> str:
    """Return the error and the last line of the user's code that led to it."""
    if isinstance(error, SyntaxError):
        return f"{error.msg} at {Path(error.filename or '').name}:{error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    outside = [frame for frame in frames if Path(frame.filename).resolve().parent != Path(__file__).resolve().parent]
    own = [frame for frame in outside if "dragoman" not in Path(frame.filename).parts] or outside
    location = f" at {Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""
    return f"{type(error).__name__}: {error}{location}"
