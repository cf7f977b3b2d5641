"""Optional packages."""

import importlib
from typing import Any

from dragoman.base.errors import ConfigError


def import_optional(module: str, extra: str, package: str | None = None) -> Any:
    """Import a module of an optional package.

    extra: the extra of dragoman that installs it; package: name of the package, if it differs from the module. Raises
    ConfigError with installation instructions if it is missing.
    """
    package = package or module
    try:
        return importlib.import_module(module)
    except ImportError as error:
        alone = f"'{package}'" if "[" in package else package  # brackets are patterns in shells
        raise ConfigError(
            f"this requires the package {package} ({error}): pip install 'dragoman[{extra}]', or pip install {alone}"
        ) from None
