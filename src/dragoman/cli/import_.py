"""`dragoman import`: convert a model of another program to a model folder."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import Quiet


def import_model(
    folder: Annotated[
        Path, typer.Argument(help="A local Hugging Face folder of a Marian model, such as one of OPUS-MT.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The model folder to write, which must not exist.")],
    allow_pickle: Annotated[
        bool,
        typer.Option(
            "--allow-pickle", help="Read parameters from the pickle pytorch_model.bin if there is no safer file."
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Convert a model of another program, with its parameters and vocabularies, to a model folder."""
    from dragoman.base.log import info
    from dragoman.exchange.formats import import_model

    import_model(folder, out, allow_pickle=allow_pickle)
    info(f"{folder} was converted to {out}. Use it with `dragoman translate {out}`")
