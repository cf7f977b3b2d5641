"""The package ctranslate2, which need not be installed."""

from typing import Any

from dragoman.base.packages import optional


def library() -> Any:
    """The module. Raises ConfigError where it is not installed."""
    return optional("ctranslate2", "fast")
