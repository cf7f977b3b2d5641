"""The errors that dragoman raises deliberately. Each message describes the problem, its location, and a remedy."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal


class DragomanError(Exception):
    """Base class of errors that users can resolve. The command line prints the message without a traceback.

    >>> from dragoman import DragomanError, Translator
    >>> try:
    ...     Translator.load("runs/absent")
    ... except DragomanError as error:
    ...     print(error)
    the model folder runs/absent does not exist
    """

    exit_code = 1


class ConfigError(DragomanError):
    """An unknown setting, a setting of the wrong type, or contradictory settings."""

    exit_code = 2


def reject_options(options: Mapping[str, object], condition: str) -> None:
    """Raise ConfigError if any of the options is set.

    options: values by option name; None or an empty value means that an option is not set. condition: end of the
    message, after "can only be used", such as "with --beam".
    """
    for name, value in options.items():
        if value not in (None, (), [], {}):
            raise ConfigError(f"{name} can only be used {condition}: remove it")


class DataError(DragomanError):
    """A corpus that cannot be read, such as a missing or empty file, sides of unequal length, or invalid UTF-8."""


class DocumentError(DataError):
    """A document that does not conform to its format or is too large."""


class LineError(DataError):
    """A line that cannot be read.

    index: zero-based index of the line; reason: description of the error; side: the side of the pair with the error.
    """

    def __init__(self, index: int, reason: str, side: Literal["source", "target"] = "source") -> None:
        super().__init__(f"line {index + 1}: {reason}")
        self.index, self.reason, self.side = index, reason, side

    def __reduce__(self) -> tuple[type["LineError"], tuple[object, ...]]:
        """Make the error picklable."""
        return type(self), (self.index, self.reason, self.side)

    def with_file_name(self, origin: Path | str | None, line: int | None = None) -> DataError:
        """Return a DataError whose message contains the file name.

        origin: the file name; None for the standard input. line: one-based line number; by default, the index plus 1.
        """
        return DataError(f"{origin or 'standard input'}, line {line or self.index + 1}: {self.reason}")


class TooLongError(LineError):
    """A line with more tokens than the model's maximum number of positions."""


@contextmanager
def in_files(source: Path | str | None, target: Path | str | None = None) -> Iterator[None]:
    """Add the file name to any LineError raised within this context. None stands for the standard input."""
    try:
        yield
    except LineError as error:
        raise error.with_file_name(source if error.side == "source" else target) from None


class ModelError(DragomanError):
    """A model folder is missing, damaged, or unsuitable for the request."""


class ResourceError(DragomanError):
    """Memory or disk space is insufficient, or a file cannot be written."""


class DivergenceError(DragomanError):
    """Training has diverged: the loss is not finite or has exploded."""


class Interrupted(DragomanError):
    """Ctrl-C or a signal interrupted the work. The message states whether completed work is kept."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number
