"""`dragoman inspect curves`: the learning curves of training runs over each other."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.commands.inspection.options import FigureFile, figure_file, write_figure


@command("dragoman inspect curves runs/small runs/large --out curves.svg")
def curves(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Folders of training runs, also unfinished ones.")
    ],
    out: FigureFile = None,
) -> None:
    """Draw the learning curves of training runs over each other.

    They show the losses, the validation metrics, the learning rate and the speed.
    """
    from dragoman.training.progress.training_curves import run_curves

    file = figure_file(out, "curves", *runs)
    write_figure(run_curves(runs), file)
