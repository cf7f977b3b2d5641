"""`dragoman shortlist`: train a shortlist for a translation model."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.options import Quiet, Threads


@command("dragoman shortlist runs/en-de --source train.en --target train.de")
def shortlist(
    model: Annotated[Path, typer.Argument(help="Folder of a translation model.", show_default=False)],
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...",
            help="Settings of the shortlist, such as frequent=200 or method.kind=ibm1.",
            show_default=False,
        ),
    ] = None,
    *,
    source: Annotated[
        Path,
        typer.Option("--source", help="Source side of the training text, one sentence per line; plain or compressed."),
    ],
    target: Annotated[Path, typer.Option("--target", help="Target side of the training text, one sentence per line.")],
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Train a shortlist of probable translations per token.

    The shortlist is trained on a parallel text and stored in the model folder. With the setting search.shortlist=true,
    `dragoman translate` then considers only the tokens in the shortlist of each source, which is faster on a CPU.
    """
    from dragoman.statistical.alignment.add_shortlist import shortlist

    shortlist(model, source, target, overrides=settings or (), threads=threads, quiet=quiet)
