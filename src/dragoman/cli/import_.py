"""`dragoman import`: a model folder from another program's."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import Quiet


def import_model(
    folder: Annotated[
        Path, typer.Argument(help="A Hugging Face folder of a Marian model, such as one of OPUS-MT, on this machine.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The model folder to write; there must be none.")],
    allow_pickle: Annotated[
        bool,
        typer.Option(
            "--allow-pickle", help="Read pytorch_model.bin, a pickle, where nothing else holds the parameters."
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Write a model folder with a foreign model's parameters and vocabularies, to be used like any other."""
    from dragoman.base.log import info
    from dragoman.exchange.formats import import_model

    import_model(folder, out, allow_pickle=allow_pickle)
    info(f"the model of {folder} is in {out}: dragoman translate {out}")
