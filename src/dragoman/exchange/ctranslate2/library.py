"""The package ctranslate2, which need not be installed."""

from typing import Any

from dragoman.base.packages import import_optional


def library() -> Any:
    """The module. Raises ConfigError where it is not installed."""
    return import_optional("ctranslate2", "fast")
