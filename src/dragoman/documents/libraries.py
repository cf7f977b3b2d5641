"""The packages that documents need, which need not be installed."""

import importlib
from typing import Any

from dragoman.base.errors import ConfigError


def library(module: str, package: str) -> Any:
    """The module. Raises ConfigError where its package is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"this needs the package {package} ({error}): pip install 'dragoman[documents]', or pip install {package}"
        ) from None
