"""Messages to the user: always on stderr, so that stdout carries results only."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.text import Text


class _Console(Console):
    """Where nobody reads any more, the library would end the process, or the thread."""

    def on_broken_pipe(self) -> None:
        """Nothing more is told."""
        self.quiet = True


console = _Console(stderr=True, highlight=False, soft_wrap=True, force_jupyter=False)
"""The one terminal that messages and the line of work in progress share. Results never go here."""

_quiet = False


def info(message: str) -> None:
    """Say what is going on. Square brackets in `message` are printed as they are."""
    if not _quiet:
        _tell(Text(message))


def warn(message: str) -> None:
    """Say that something is not as it should be, though work goes on."""
    _tell(Text.assemble(("warning: ", "yellow"), message))


def _tell(message: Text) -> None:
    """One that cannot be written, as on a full disk, is lost: work does not end for it."""
    with suppress(OSError):
        console.print(message)


def is_quiet() -> bool:
    """Whether nobody wants to be told what is going on."""
    return _quiet or console.quiet


@contextmanager
def quietly(quiet: bool = True) -> Iterator[None]:
    """While open, nothing is told of what is going on; warnings and errors are. quiet: False changes nothing."""
    global _quiet
    before = _quiet
    _quiet = before or quiet
    try:
        yield
    finally:
        _quiet = before


def format_duration(seconds: float) -> str:
    """A duration as hours:minutes:seconds."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
