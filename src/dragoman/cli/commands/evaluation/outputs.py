"""`dragoman evaluate outputs`: score the summaries, labels or answers that models write."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.commands.evaluation.options import Compare, Json, TestSettings, print_json, print_under_names
from dragoman.cli.options import Beam, Device, Model, Quiet, Threads

if TYPE_CHECKING:
    from dragoman.data.corpora.corpus import CorpusConfig


@command(
    "dragoman evaluate outputs runs/summaries",
    "dragoman evaluate outputs runs/summaries --test test.jsonl --metric rouge1",
    files="--test",
)
def outputs(
    model: Model,
    settings: TestSettings = None,
    *,
    test: Annotated[
        list[Path] | None,
        typer.Option(
            "--test",
            help="Texts with summaries, labels or answers, as in data.valid; repeatable (default: data.test, or what "
            "training held out).",
        ),
    ] = None,
    compare: Compare = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", metavar="NAME", help="Metric; repeatable (default: those of the model's validation)."),
    ] = None,
    as_json: Json = False,
    beam: Beam = None,
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, help="Number of texts per batch; does not affect the output.")
    ] = 32,
    device: Device = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Score the summaries, labels or answers that models write.

    The model is compared with the others and with simple baselines by paired bootstrap.
    """
    from dragoman.base.errors import reject_options
    from dragoman.evaluation.stored_test_set import stored_records
    from dragoman.evaluation.text_to_text import evaluate_outputs

    if not test:
        reject_options({"KEY=VALUE": settings}, "with --test FILE")
    tests: list[Path | CorpusConfig] = [*(test or stored_records(model))]
    models = [model, *(compare or [])]
    results = [
        (
            each,
            evaluate_outputs(
                models,
                each,
                settings or (),
                metric=metric,
                beam=beam,
                batch_size=batch_size,
                device=device,
                threads=threads,
            ),
        )
        for each in tests
    ]
    if as_json:
        values = [{"test": str(each), **result.as_json()} for each, result in results]
        print_json(values[0] if len(values) == 1 else {"tests": values})
    else:
        print_under_names(results)
