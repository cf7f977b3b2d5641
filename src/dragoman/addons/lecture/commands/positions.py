"""`dragoman positions`: draw a position scheme, and compare the properties of all schemes."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.options import Quiet, Threads


@command(
    "dragoman positions",
    "dragoman positions kind=alibi --heads 4",
)
def positions(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...",
            help="Position scheme, as in model.positions: kind=sinusoidal base=10000 (the default), kind=alibi, …",
            show_default=False,
        ),
    ] = None,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the pictures.")] = Path("positions"),
    width: Annotated[int, typer.Option("--width", min=2, help="Model width d.")] = 128,
    heads: Annotated[int, typer.Option("--heads", min=1, help="Number of attention heads; must divide the width.")] = 8,
    length: Annotated[int, typer.Option("--length", min=4, max=2000, help="Number of tokens.")] = 100,
    layers: Annotated[int, typer.Option("--layers", min=1, help="Number of layers for the receptive fields.")] = 6,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Draw a position scheme, and compare all schemes.

    The schemes are compared by the criteria of deck 001. The receptive fields of layers are printed. A scheme with one
    vector per position has two pictures: encoding.png shows the matrix of all vectors, and dot-products.png shows
    PE(i)·PE(j) for all pairs of positions. A scheme inside attention has one picture: weights.png shows the attention
    weights of each head among equal tokens.

    According to the lectures, the dot products of sinusoids "decay nicely", and distances between vectors grow with
    |i − j|. This is true only of small distances. The command prints the distance at which the products rise again,
    which is 44 for d = 512.
    """
    from dragoman.addons.lecture.draw_positions import draw_positions
    from dragoman.base.log import info
    from dragoman.base.machine.device import use_threads

    use_threads(threads)
    drawing = draw_positions(out, overrides or [], width=width, heads=heads, length=length, layers=layers)
    print(drawing)
    if drawing.pictures:
        info(f"Pictures are in {out}.")
