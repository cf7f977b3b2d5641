"""Import of optional packages."""

import importlib
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
