"""`dragoman evaluate sheet`: a sheet on which people judge translations."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.options import Quiet


@command(
    "dragoman evaluate sheet --source test.en --hypothesis a.de --out sheet.csv",
    "dragoman evaluate sheet --hypothesis a.de --hypothesis b.de --out sheet.html",
    files="--hypothesis",
)
def sheet(
    *,
    hypothesis: Annotated[
        list[Path], typer.Option("--hypothesis", help="Translations of a system; give it twice to compare two systems.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Sheet to write: .csv for a spreadsheet, or .html for a browser.")],
    source: Annotated[Path | None, typer.Option("--source", help="Source sentences, shown to the judges.")] = None,
    reference: Annotated[
        Path | None, typer.Option("--reference", help="Reference translations, shown to the judges.")
    ] = None,
    sentences: Annotated[
        int, typer.Option("--sentences", min=1, help="Maximum number of sentences, which are drawn at random.")
    ] = 100,
    seed: Annotated[int, typer.Option("--seed", help="Determines the sentences and their order.")] = 1,
    quiet: Quiet = False,
) -> None:
    """Write a sheet on which people judge translations.

    The systems are not named, and the order is random. Each translation of one system gets a score from 0 to 100; of
    two systems, the better translation is chosen. The file NAME.key.json beside the sheet names the systems: keep it
    for `dragoman evaluate judgements`.
    """
    from dragoman.evaluation.judgement_sheet import write_sheet

    write_sheet(out, hypothesis, source=source, reference=reference, sentences=sentences, seed=seed)
