"""Packages that need not be installed."""

import importlib
from typing import Any

from dragoman.base.errors import ConfigError


def import_optional(module: str, extra: str, package: str | None = None) -> Any:
    """A module. extra: of dragoman, that brings it; package: its name where that is not the module's.

    Raises ConfigError, which says how to install it, where it is missing.
    """
    package = package or module
    try:
        return importlib.import_module(module)
    except ImportError as error:
        alone = f"'{package}'" if "[" in package else package  # which shells take for a pattern
        raise ConfigError(
            f"this needs the package {package} ({error}): pip install 'dragoman[{extra}]', or pip install {alone}"
        ) from None
