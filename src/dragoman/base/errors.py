"""The errors that dragoman raises on purpose: each message says what is wrong, where, and what to do about it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal


class DragomanError(Exception):
    """A failure that the user can act on. The command line prints its message without a traceback."""

    exit_code = 1


class ConfigError(DragomanError):
    """A setting that does not exist, has the wrong type, or contradicts another one."""

    exit_code = 2


def reject_options(options: Mapping[str, object], company: str) -> None:
    """Raises ConfigError for an option that is given though it would change nothing; company: what it goes with.

    options: by name; one that is not given is None or empty.
    """
    for name, value in options.items():
        if value not in (None, (), [], {}):
            raise ConfigError(f"{name} goes {company} only: leave it out")


class DataError(DragomanError):
    """A corpus that cannot be read: missing, empty, unequal sides, broken encoding."""


class DocumentError(DataError):
    """A document that is not what its format says, or more than is read of one."""


class LineError(DataError):
    """A line that cannot be read. place: its index, from 0; reason: what is wrong with it; side: whose line it is."""

    def __init__(self, place: int, reason: str, side: Literal["source", "target"] = "source") -> None:
        super().__init__(f"line {place + 1}: {reason}")
        self.place, self.reason, self.side = place, reason, side

    def __reduce__(self) -> tuple[type["LineError"], tuple[object, ...]]:
        """So that it can go from one process to another."""
        return type(self), (self.place, self.reason, self.side)

    def at(self, origin: Path | str | None, line: int | None = None) -> DataError:
        """The same error with the file's name, and the line's number where it is another."""
        return DataError(f"{origin or 'standard input'}, line {line or self.place + 1}: {self.reason}")


class TooLongError(LineError):
    """A line that a model has too few positions for."""


@contextmanager
def in_files(source: Path | str | None, target: Path | str | None = None) -> Iterator[None]:
    """Names the file in the errors of lines that are read inside; None is the standard input."""
    try:
        yield
    except LineError as error:
        raise error.at(source if error.side == "source" else target) from None


class ModelError(DragomanError):
    """A model folder that is missing, damaged, or does not fit what is asked of it."""


class ResourceError(DragomanError):
    """Too little memory or disk space for what is asked."""


class DivergenceError(DragomanError):
    """Training has left the region where it can recover: a loss that is not finite, or one that exploded."""


class Interrupted(DragomanError):
    """Work was asked to stop, by Ctrl-C or a signal; what is done is kept, where the message says so."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number
