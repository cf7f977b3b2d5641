"""`dragoman inspect lines`: the attention weights of heads as lines between tokens."""

from typing import Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.commands.inspection.options import (
    AnalysedText,
    FigureFile,
    ModelOptions,
    Target,
    figure_file,
    write_figure,
)
from dragoman.cli.options import Model


@command("dragoman inspect lines runs/en-de 'A dog runs.' --out lines.svg --layer 2")
def lines(
    model: Model,
    text: AnalysedText,
    *,
    options: ModelOptions,
    out: FigureFile = None,
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            help="encoder.self_attention, decoder.self_attention or decoder.cross_attention (default: the last that "
            "the model has).",
        ),
    ] = "",
    layer: Annotated[int | None, typer.Option("--layer", min=1, help="Layer (default: the last one).")] = None,
    head: Annotated[
        list[int] | None, typer.Option("--head", min=1, help="Head to draw; repeatable (default: all heads).")
    ] = None,
    token: Annotated[
        int | None,
        typer.Option(
            "--token", min=1, help="Number of the token whose lines are drawn, such as a verb (default: all tokens)."
        ),
    ] = None,
    target: Target = None,
) -> None:
    """Draw the attention weights of heads as lines.

    For example, draw the lines from a verb to who acted, and on whom.
    """
    from dragoman.inspection.inspect import inspection_of

    file = figure_file(out, "lines", model, text)
    loaded = options.load(model)
    inspection = inspection_of(loaded.subject(text, options.settings(target)))
    write_figure(inspection.lines(kind, layer, head, token), file)
