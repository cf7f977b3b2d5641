"""Import of optional packages."""

import importlib
import signal
import subprocess
import sys
from typing import Any

from dragoman.base.errors import ConfigError


def import_optional(module: str, extra: str, package: str | None = None) -> Any:
    """Import a module of an optional package and return it.

    extra: dragoman's extra that installs the package. package: name of the package, if it differs from the module's.
    Raises ConfigError with installation instructions if the package is missing.
    """
    package = package or module
    try:
        return importlib.import_module(module)
    except Exception as error:  # packages that are installed but broken raise other errors, too
        quoted = f"'{package}'" if "[" in package else package  # shells treat brackets as patterns
        raise ConfigError(
            f"this requires the package {package} ({error}): pip install 'dragoman[{extra}]', or pip install {quoted}"
        ) from None


def check_import(module: str) -> None:
    """Import a module in another process, because importing a compiled package can end the process.

    This happens, for example, if the processor lacks instructions that the package was compiled for. Does nothing if
    the module has been imported already. Raises ConfigError if the process was ended by a signal.
    """
    if module in sys.modules:
        return
    done = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, check=False)
    if done.returncode < 0:
        reason = signal.strsignal(-done.returncode) or f"signal {-done.returncode}"
        raise ConfigError(f"the package {module} crashes when it is imported ({reason}): install another version")
