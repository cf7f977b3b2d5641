"""`dragoman evaluate alignments`: the alignment error rate of word alignments."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from dragoman.cli.command import command
from dragoman.cli.commands.evaluation.options import Json, print_json
from dragoman.cli.options import Quiet
from dragoman.cli.results import print_results

if TYPE_CHECKING:
    from dragoman.statistical.alignment.links import IndexBase


@command(
    "dragoman evaluate alignments --gold test.wa --hypothesis links.txt",
    "dragoman evaluate alignments --gold test.wa --hypothesis links.txt \\\n"
    "  --source test.en --target test.de --draw pair.svg --draw-line 3",
    files="--gold and --hypothesis",
)
def alignments(
    *,
    gold: Annotated[
        Path,
        typer.Option(
            "--gold",
            help="Annotated word alignments: links 3-4, and possible links 3p4, 3?4 or 3-4-P. NAACL's format is "
            "supported as well.",
        ),
    ],
    hypothesis: Annotated[
        list[Path],
        typer.Option("--hypothesis", help="Links of a system; repeat it to compare systems by paired bootstrap."),
    ],
    source: Annotated[
        Path | None, typer.Option("--source", help="Tokenised source sentences, to check that links are inside them.")
    ] = None,
    target: Annotated[Path | None, typer.Option("--target", help="Tokenised target sentences.")] = None,
    gold_base: Annotated[
        int | None,
        typer.Option(
            "--gold-base", metavar="0|1", help="Number of the first word of a sentence in --gold (default: detected)."
        ),
    ] = None,
    hypothesis_base: Annotated[
        int | None,
        typer.Option(
            "--hypothesis-base",
            metavar="0|1",
            help="Number of the first word of a sentence in --hypothesis (default: detected).",
        ),
    ] = None,
    confusion: Annotated[
        Path | None,
        typer.Option(
            "--confusion",
            help="Also draw the confusion matrix of links, as SVG, PNG, JSON or CSV, according to the suffix.",
        ),
    ] = None,
    draw: Annotated[
        Path | None,
        typer.Option(
            "--draw",
            help="With --source and --target, also draw the links of all systems in a sentence pair over the annotated "
            "ones.",
        ),
    ] = None,
    draw_line: Annotated[
        int, typer.Option("--draw-line", min=1, help="Line number of the sentence pair for --draw.")
    ] = 1,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compute AER, precision, recall and F1 of word alignments."""
    from dragoman.base.files import check_new_files
    from dragoman.evaluation.evaluate_alignments import evaluate_alignments

    check_new_files({"--confusion": confusion, "--draw": draw}, gold, source, target, *hypothesis)
    result = evaluate_alignments(
        gold,
        hypothesis,
        gold_base=cast("IndexBase | None", gold_base),
        hypothesis_base=cast("IndexBase | None", hypothesis_base),
        source=source,
        target=target,
    )
    if confusion is not None:
        result.confusion().write(confusion)
    if draw is not None:
        result.drawing(draw_line).write(draw)
    if as_json:
        print_json(result.as_json())
    else:
        print_results(result)
