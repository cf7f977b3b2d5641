"""`dragoman inspect checkpoints`: one text through the checkpoints of a run."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.commands.inspection.options import (
    AnalysedText,
    Json,
    LabelOptions,
    ModelOptions,
    Out,
    Target,
    write_figures,
)
from dragoman.cli.results import print_results


@command("dragoman inspect checkpoints runs/en-de 'A dog runs.'")
def checkpoints(
    run: Annotated[Path, typer.Argument(help="Run folder, also of a run in progress.")],
    text: AnalysedText,
    *,
    labels: LabelOptions,
    options: ModelOptions,
    target: Target = None,
    head: Annotated[
        str | None,
        typer.Option("--head", metavar="KIND:LAYER:HEAD", help="Head whose weights are shown at each checkpoint."),
    ] = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Show the output of each checkpoint of a run for one text.

    With --target, also show the log-probability of this reference.
    """
    import json

    from dragoman.base.files import check_new_folder
    from dragoman.base.machine.device import use_threads
    from dragoman.inspection.checkpoints import follow_checkpoints, head_figure, reference_figure

    if out is not None:
        check_new_folder(out)
    use_threads(options.threads)
    settings = options.settings(target, labels)
    found = follow_checkpoints(run, labels.text(text), settings, head, options.device, task=labels.task)
    if as_json:
        print(json.dumps([each.as_json() for each in found], ensure_ascii=False))
    else:
        print_results(f"{found[0].output}, and the output of each checkpoint")
        print_results("\n".join(f"{each.step:>9,}  {each.total:>10.4f}  {each.predicted}" for each in found))
    weights = head_figure(found)
    write_figures(out, {"output": reference_figure(found), **({} if weights is None else {"head": weights})})
