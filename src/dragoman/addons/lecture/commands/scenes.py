"""`dragoman scenes`: draw pictures of coloured shapes with captions."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.options import Quiet


@command("dragoman scenes --out scenes")
def scenes(
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write; it must not exist.")] = Path("scenes"),
    train: Annotated[int, typer.Option("--train", min=1, help="Number of training scenes.")] = 8000,
    valid: Annotated[int, typer.Option("--valid", min=1, help="Number of validation scenes.")] = 300,
    test: Annotated[int, typer.Option("--test", min=1, help="Number of test scenes of each kind.")] = 500,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 1,
    quiet: Quiet = False,
) -> None:
    """Draw pictures of coloured shapes with captions.

    They have region vectors, to learn image captioning from. Every scene in unseen.jsonl contains a combination of
    colour and shape that does not occur in training.
    """
    from dragoman.addons.lecture.scene_corpus import write_scenes

    print(write_scenes(out, train=train, valid=valid, test=test, seed=seed))
