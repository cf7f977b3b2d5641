"""Messages to the user, which are always printed to stderr so that stdout contains only results."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.text import Text


class _Console(Console):
    """A console that ignores a closed pipe. Rich's own console would end the process or the thread."""

    def on_broken_pipe(self) -> None:
        """Stop printing."""
        self.quiet = True


console = _Console(stderr=True, highlight=False, soft_wrap=True, force_jupyter=False)
"""The terminal shared by messages and progress. Results are never printed here."""

_quiet = False


def info(message: str) -> None:
    """Print a message. Square brackets are printed literally."""
    if not _quiet:
        _print(Text(message))


def warn(message: str) -> None:
    """Print a warning."""
    _print(Text.assemble(("warning: ", "yellow"), message))


def _print(message: Text) -> None:
    """Print a message, or drop it if it cannot be written, for example because the disk is full."""
    with suppress(OSError):
        console.print(message)


def is_quiet() -> bool:
    """Return whether messages other than warnings and errors are suppressed."""
    return _quiet or console.quiet


@contextmanager
def quietly(quiet: bool = True) -> Iterator[None]:
    """Suppress messages other than warnings and errors within this context. quiet: if False, do nothing.

    >>> from dragoman import Translator, quietly
    >>> with quietly():
    ...     translations = Translator.load("runs/ende").translate(["The dog sleeps."])
    """
    global _quiet
    previous = _quiet
    _quiet = previous or quiet
    try:
        yield
    finally:
        _quiet = previous


def format_duration(seconds: float) -> str:
    """Format a duration as hours:minutes:seconds."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
