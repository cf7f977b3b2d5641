"""Messages to the user: records of the loggers `dragoman.*`, printed to stderr, so that stdout contains only results.

The logger of a message is the module that reports it, such as `dragoman.training.run.loop`. A program that adds a
handler to the logger `dragoman` receives the records instead of the console. Records are not passed to the root logger,
because imported packages add handlers to it, and messages would disappear in them.
"""

import logging
import sys
import traceback
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

_quiet = _silent = False


_LABELS = {logging.WARNING: ("warning: ", "yellow"), logging.ERROR: ("error: ", "red")}


class _ConsoleHandler(logging.Handler):
    """Prints records on the console, unless the program that uses dragoman has handlers of its own."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message, or drop it if it cannot be written, for example because the disk is full.

        Square brackets are printed literally.
        """
        if len(_logger.handlers) > 1:
            return
        message = record.getMessage()
        if record.exc_info:
            message += "\n" + "".join(traceback.format_exception(*record.exc_info)).rstrip()
        text = Text.assemble(_LABELS.get(record.levelno, ""), message)
        with suppress(OSError):  # a terminal would wrap long messages inside words; a file has one line per message
            console.print(text, soft_wrap=not console.is_terminal)


_logger = logging.getLogger("dragoman")
_logger.setLevel(logging.INFO)
_logger.propagate = False
_logger.addHandler(_ConsoleHandler())


def info(message: str) -> None:
    """Report a message, as the logger of the calling module."""
    if not _quiet:
        _report(logging.INFO, message)


def warn(message: str) -> None:
    """Report a warning, as the logger of the calling module."""
    if not _silent:
        _report(logging.WARNING, message)


def _report(level: int, message: str) -> None:
    module: str = sys._getframe(2).f_globals.get("__name__", "dragoman")
    name = module if module.startswith("dragoman.") else "dragoman"
    logging.getLogger(name).log(level, "%s", message, stacklevel=3)


def is_quiet() -> bool:
    """Return whether messages other than warnings and errors are suppressed."""
    return _quiet or console.quiet


@contextmanager
def quietly(quiet: bool = True, *, warnings: bool = False) -> Iterator[None]:
    """Suppress messages other than warnings and errors within this context. quiet: if False, do nothing.

    warnings: whether warnings are suppressed as well.

    >>> from dragoman import Translator, quietly
    >>> with quietly():
    ...     translations = Translator.load("runs/ende").translate(["The dog sleeps."])
    """
    global _quiet, _silent
    previous = _quiet, _silent
    _quiet, _silent = _quiet or quiet, _silent or (quiet and warnings)
    try:
        yield
    finally:
        _quiet, _silent = previous


def format_duration(seconds: float) -> str:
    """Format a duration as hours:minutes:seconds."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
