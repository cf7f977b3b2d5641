"""`print_judged` prints results with a verdict, which is coloured in a terminal."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.checkpoint.verdict import Verdict

_STYLES = {"good": "bold green", "warning": "bold yellow", "bad": "bold red"}


def print_judged(text: str, verdict: "Verdict | None") -> None:
    """Print a text, and in a terminal its verdict's sentence in green, yellow or red, unless NO_COLOR is set."""
    if verdict is None or not sys.stdout.isatty():
        print(text)
        return
    from rich.console import Console
    from rich.text import Text

    styled = Text(text)
    styled.highlight_words([verdict.sentence], _STYLES[verdict.level])
    Console(highlight=False, soft_wrap=True).print(styled)
