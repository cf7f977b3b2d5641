"""The errors that dragoman raises on purpose. Messages say what is wrong, where, and what to do about it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal


class DragomanError(Exception):
    """A failure that the user can act on. The command line prints its message without a traceback."""

    exit_code = 1


class ConfigError(DragomanError):
    """An unknown setting, a setting of the wrong type, or contradictory settings."""

    exit_code = 2


def reject_options(options: Mapping[str, object], company: str) -> None:
    """Raise ConfigError for options that have no effect in the given mode.

    options: values by option name; None or empty if not given. company: completes "can only be used …".
    """
    for name, value in options.items():
        if value not in (None, (), [], {}):
            raise ConfigError(f"{name} can only be used {company}: remove it")


class DataError(DragomanError):
    """A corpus that cannot be read: a missing or empty file, sides of unequal length, or invalid UTF-8."""


class DocumentError(DataError):
    """A document that does not conform to its format, or is too large."""


class LineError(DataError):
    """A line that cannot be read. index: of the line, from 0; reason: the error; side: source or target."""

    def __init__(self, index: int, reason: str, side: Literal["source", "target"] = "source") -> None:
        super().__init__(f"line {index + 1}: {reason}")
        self.index, self.reason, self.side = index, reason, side

    def __reduce__(self) -> tuple[type["LineError"], tuple[object, ...]]:
        """Make the error picklable."""
        return type(self), (self.index, self.reason, self.side)

    def at(self, origin: Path | str | None, line: int | None = None) -> DataError:
        """Return the error with a file name. line: line number, if it is not the index plus 1."""
        return DataError(f"{origin or 'standard input'}, line {line or self.index + 1}: {self.reason}")


class TooLongError(LineError):
    """A line that is longer than the model's maximum number of positions."""


@contextmanager
def in_files(source: Path | str | None, target: Path | str | None = None) -> Iterator[None]:
    """Add file names to errors in lines that are read within this context; None is the standard input."""
    try:
        yield
    except LineError as error:
        raise error.at(source if error.side == "source" else target) from None


class ModelError(DragomanError):
    """A model folder that is missing, damaged, or unsuitable for the request."""


class ResourceError(DragomanError):
    """Not enough memory or disk space."""


class DivergenceError(DragomanError):
    """Training has diverged: the loss is not finite, or has exploded."""


class Interrupted(DragomanError):
    """Work was interrupted by Ctrl-C or a signal; completed work is kept if the message says so."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number
