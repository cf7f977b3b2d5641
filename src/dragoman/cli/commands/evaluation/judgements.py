"""`dragoman evaluate judgements`: what people judged on a sheet."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.commands.evaluation.options import Json, print_json
from dragoman.cli.options import Quiet
from dragoman.cli.results import print_results


@command(
    "dragoman evaluate judgements sheet.csv",
    "dragoman evaluate judgements anna.csv ben.csv --key sheet.key.json",
)
def judgements(
    sheets: Annotated[list[Path], typer.Argument(metavar="SHEET...", help="Filled-in sheets in CSV, one per judge.")],
    *,
    key: Annotated[
        Path | None, typer.Option("--key", help="Key of the sheet (default: NAME.key.json beside the first sheet).")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Evaluate sheets that people have filled in.

    Prints the mean score of a system with a bootstrap interval, or for how many sentences each of two systems is
    better, with a sign test, and how far several judges agree.
    """
    from dragoman.evaluation.judgements import evaluate_judgements

    result = evaluate_judgements(sheets, key)
    if as_json:
        print_json(result.as_json())
    else:
        print_results(result)
