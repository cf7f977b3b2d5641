"""`dragoman export`: a model folder in another program's format."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import Model


class Format(StrEnum):
    """What can be written."""

    marian = "marian"


def export(
    model: Model,
    to: Annotated[Format, typer.Option("--to", help="The program that shall use it.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write; there must be none of that name.")],
) -> None:
    """Write a model for another program."""
    from dragoman.base.log import info
    from dragoman.exchange.marian.exporting import export as write_marian

    {Format.marian: write_marian}[to](model, out)
    info(f"{out}: {model} for {to.value}")
