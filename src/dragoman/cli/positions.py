"""`dragoman positions`: pictures of a position scheme, and properties of all schemes."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import Quiet, Threads


def positions(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...",
            help="Position scheme, as in model.positions: kind=sinusoidal base=10000 (the default), kind=alibi, …",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the pictures.")] = Path("positions"),
    width: Annotated[int, typer.Option("--width", min=2, help="Model width d.")] = 128,
    heads: Annotated[int, typer.Option("--heads", min=1, help="Number of attention heads; must divide the width.")] = 8,
    length: Annotated[int, typer.Option("--length", min=4, max=2000, help="Number of tokens.")] = 100,
    layers: Annotated[int, typer.Option("--layers", min=1, help="Number of layers for the receptive fields.")] = 6,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Draw a position scheme, compare all schemes by deck 001's criteria, and print the receptive fields of layers.

    There are two pictures of a scheme with one vector per position: encoding.png, the matrix of all vectors, and
    dot-products.png, PE(i)·PE(j) of all pairs. There is one of a scheme inside attention: weights.png, the attention
    weights of each head among equal tokens.

    The lectures say that the dot products of sinusoids "decay nicely", and that distances of vectors grow with |i − j|.
    They do so only at first; the command prints the distance at which the products rise again, 44 for d = 512.
    """
    from dragoman.base.log import info
    from dragoman.base.machine.device import use_threads
    from dragoman.lecture.draw_positions import draw_positions

    use_threads(threads)
    drawing = draw_positions(out, overrides or [], width=width, heads=heads, length=length, layers=layers)
    print(drawing)
    if drawing.pictures:
        info(f"Pictures are in {out}.")
