"""`dragoman average`: average the parameters of several checkpoints."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.options import Quiet


@command("dragoman average runs/en-de/checkpoints/step-* --out runs/averaged")
def average(
    checkpoints: Annotated[
        list[Path], typer.Argument(help="Model folders with the same architecture, such as runs/x/checkpoints/step-*.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Model folder to write.")],
    quiet: Quiet = False,
) -> None:
    """Average the parameters of several models. The result is a model folder."""
    from dragoman.base.log import info
    from dragoman.checkpoint.average import average

    average(checkpoints, out)
    if len(checkpoints) == 1:
        info(f"wrote the parameters of {checkpoints[0]} to {out}, because it is the only checkpoint")
    else:
        info(f"wrote the mean of {len(checkpoints)} checkpoints to {out}")
    info(f"To let translate and serve choose int8, measure what it costs: dragoman evaluate precision-cost {out}")
