"""The package ctranslate2, which need not be installed."""

import importlib
from typing import Any

from dragoman.base.errors import ConfigError


def library() -> Any:
    """The module. Raises ConfigError where it is not installed."""
    try:
        return importlib.import_module("ctranslate2")
    except ImportError as error:
        raise ConfigError(
            f"this needs the package ctranslate2 ({error}): pip install 'dragoman[fast]', or pip install ctranslate2"
        ) from None
