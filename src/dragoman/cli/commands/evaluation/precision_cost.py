"""`dragoman evaluate precision-cost`: what int8 costs a translation model."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.commands.evaluation.options import Json, print_json
from dragoman.cli.option_groups import split_tags
from dragoman.cli.options import Model, Quiet, Tags, Threads, To
from dragoman.cli.results import print_results


@command(
    "dragoman evaluate precision-cost runs/en-de",
    "dragoman evaluate precision-cost runs/en-de \\\n  --source test.en --reference test.de",
    files="--source and --reference",
)
def precision_cost(
    model: Model,
    *,
    source: Annotated[
        Path | None, typer.Option("--source", help="Source sentences (default: the validation set of the training).")
    ] = None,
    reference: Annotated[Path | None, typer.Option("--reference", help="Reference translations of --source.")] = None,
    to: To = None,
    tags: Tags = None,
    as_json: Json = False,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Measure what int8 costs a translation model, and store it in the model folder.

    `dragoman translate` and `dragoman serve` choose the precision by this measurement.
    """
    from dragoman.tasks.translation.precision_cost import measure_precision_cost

    cost = measure_precision_cost(model, source, reference, to=to, tags=split_tags(tags), threads=threads)
    if as_json:
        print_json(cost.model_dump(mode="json"))
    else:
        print_results(cost)
