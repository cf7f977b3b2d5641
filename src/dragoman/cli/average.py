"""`dragoman average`: one model from several checkpoints."""

from pathlib import Path
from typing import Annotated

import typer


def average(
    checkpoints: Annotated[
        list[Path], typer.Argument(help="Model folders of one architecture, such as runs/x/checkpoints/step-*.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The model folder to write.")],
) -> None:
    """Write a model folder whose parameters are the mean of those given."""
    from dragoman.base.errors import ConfigError
    from dragoman.base.log import info
    from dragoman.checkpoint.average import average_folders

    if any(out.resolve() == checkpoint.resolve() for checkpoint in checkpoints):
        raise ConfigError(f"--out {out} is one of the models to average, and would be lost: choose another name")
    average_folders(checkpoints, out)
    info(f"the mean of {len(checkpoints)} checkpoints is in {out}")
