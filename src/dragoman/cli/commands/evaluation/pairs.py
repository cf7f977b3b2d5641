"""`dragoman evaluate pairs`: the accuracy of language models on minimal pairs."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.commands.evaluation.options import Json, print_json
from dragoman.cli.options import Device, Model, Quiet, Threads
from dragoman.cli.results import print_results


@command("dragoman evaluate pairs runs/lm --test blimp.jsonl", files="--test")
def pairs(
    model: Model,
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...",
            help="Keys of the file, such as good=right bad=wrong (default: those of BLiMP).",
            show_default=False,
        ),
    ] = None,
    *,
    test: Annotated[Path, typer.Option("--test", help="Minimal pairs, one JSON object per line.")],
    as_json: Json = False,
    device: Device = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Measure how often the first text of a minimal pair is more probable.

    A language model scores texts by log-probability, a masked language model by pseudo-log-likelihood.
    """
    from dragoman.evaluation.minimal_pairs import evaluate_pairs

    result = evaluate_pairs(model, test, settings or (), device=device, threads=threads)
    if as_json:
        print_json(result.as_json())
    else:
        print_results(result)
