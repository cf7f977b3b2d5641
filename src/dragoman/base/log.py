"""Messages to the user: always on stderr, so that stdout carries results only."""

from rich.console import Console
from rich.text import Text

console = Console(stderr=True, highlight=False, soft_wrap=True)
"""The one terminal that messages and progress bars share. Results never go here."""


def info(message: str) -> None:
    """Say what is going on. Square brackets in `message` are printed as they are."""
    console.print(Text(message))


def warn(message: str) -> None:
    """Say that something is not as it should be, though work goes on."""
    console.print(Text.assemble(("warning: ", "yellow"), message))


def clock(seconds: float) -> str:
    """A duration as hours:minutes:seconds."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
