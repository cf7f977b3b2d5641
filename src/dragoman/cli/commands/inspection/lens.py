"""`dragoman inspect lens`: what a decoder would predict after each layer."""

from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.base.table import Table
from dragoman.cli.command import command
from dragoman.cli.commands.inspection.options import AnalysedText, Json, ModelOptions, Off, Out, Target, write_figures
from dragoman.cli.options import Model
from dragoman.cli.results import print_results

if TYPE_CHECKING:
    from dragoman.inspection.lens import DecoderLens


@command("dragoman inspect lens runs/en-de 'A dog runs.'")
def lens(
    model: Model,
    text: AnalysedText,
    *,
    options: ModelOptions,
    target: Target = None,
    count: Annotated[int, typer.Option("--count", min=1, help="Number of tokens per position in --json.")] = 5,
    off: Off = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Show what the decoder would predict if it ended after its first layers."""
    import json

    from dragoman.inspection.heads import heads_off
    from dragoman.inspection.lens import decoder_lens

    loaded = options.load(model, out=out)
    with heads_off(loaded.model, off or ()):
        found = decoder_lens(loaded, text, options.settings(target), count)
    if as_json:
        print(json.dumps(found.as_json(), ensure_ascii=False))
    else:
        print_results(_table(found))
    write_figures(out, {"lens": found.figure(), "predictions": found.predictions()})


def _table(found: "DecoderLens") -> str:
    """Return a row per position, with the most probable token after each layer and its probability."""
    rows = [["output", *(layer.name for layer in found.layers)]]
    for number, position in enumerate(found.layers[-1].positions):
        best = [layer.positions[number] for layer in found.layers]
        rows.append([position.actual or "", *(f"{each.tokens[0]} {each.probabilities[0]:.2f}" for each in best)])
    return Table(rows).text()
