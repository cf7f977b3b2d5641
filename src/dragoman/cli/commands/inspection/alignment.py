"""`dragoman inspect alignment`: the word alignments of a model, beside other aligners and annotated links."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.commands.inspection.options import AnalysedText, Json, ModelOptions, Out, Target, write_figures
from dragoman.cli.options import Model
from dragoman.cli.results import print_results

if TYPE_CHECKING:
    from dragoman.inspection.alignments import AlignmentComparison


@command("dragoman inspect alignment runs/en-de 'A dog runs.' --aligner aligner")
def alignment(
    model: Model,
    text: AnalysedText,
    *,
    options: ModelOptions,
    target: Target = None,
    gold: Annotated[
        str | None,
        typer.Option(
            "--gold",
            metavar="LINKS",
            help="Annotated links of words numbered from 0, such as '0-0 1?2' (? for a possible link).",
        ),
    ] = None,
    aligner: Annotated[
        list[Path] | None,
        typer.Option(
            "--aligner", metavar="FOLDER", help="Word aligner of `dragoman align --save` to compare; repeatable."
        ),
    ] = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Show word alignments by attention, by gradients and by word aligners."""
    import json

    from dragoman.inference.load import model_for, require
    from dragoman.inspection.alignments import compare_alignments

    loaded = options.load(model, out=out)
    require(loaded, "translate", model)
    others = {each.name: model_for("align", each) for each in aligner or ()}
    found = compare_alignments(loaded, text, options.settings(target), gold=gold, aligners=others)
    if as_json:
        print(json.dumps(found.as_json(), ensure_ascii=False))
    else:
        print_results(_table(found))
    write_figures(out, {"alignment": found.figure()})


def _table(found: "AlignmentComparison") -> str:
    """Return the links of each aligner in the Pharaoh format, with its error rate, and the aligners that are absent."""
    rates, shown = found.error_rates, found.as_json()["pharaoh"]
    lines = [f"source  {' '.join(found.source)}", f"target  {' '.join(found.target)}"]
    width = max(map(len, shown))
    for name, links in shown.items():
        rate = f"AER {rates[name]:5.1f}%  " if name in rates else ""
        lines.append(f"{name:<{width}}  {rate}{links}")
    return "\n".join([*lines, *found.absent])
