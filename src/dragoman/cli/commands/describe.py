"""`dragoman describe`: show the structure, size and cost of a model before or after training."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.arguments import check_settings
from dragoman.cli.command import command
from dragoman.cli.results import print_results
from dragoman.cli.setting_names import check_setting_names


@command(
    "dragoman describe runs/en-de",
    "dragoman describe model.preset=base --vocabulary 37000",
    takes_run_settings=True,
)
def describe(
    model: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL.yaml|RECIPE.yaml|FOLDER] [KEY=VALUE]...",
            help="YAML file with `model` settings, recipe or model folder, followed by settings that override it, such "
            "as model.preset=base.",
            show_default=False,
        ),
    ] = None,
    *,
    vocabulary: Annotated[
        str | None,
        typer.Option(
            "--vocabulary",
            metavar="N[,M]",
            help="Size of a shared vocabulary, or sizes of the source and target vocabularies (default: from the "
            "recipe, or 37,000).",
        ),
    ] = None,
    pairs: Annotated[
        int | None,
        typer.Option(
            "--pairs",
            min=1,
            help="Number of training pairs, used by the preset auto (default: 4,500,000, as in WMT 2014).",
        ),
    ] = None,
    length: Annotated[
        int,
        typer.Option("--length", min=1, max=10_000, help="Source and target length in tokens, for FLOPs and memory."),
    ] = 32,
    depth: Annotated[int, typer.Option("--depth", min=0, help="Number of levels of nested parts to show.")] = 3,
    draw: Annotated[
        Path | None,
        typer.Option(
            "--draw",
            help="New folder for figures (SVG, PNG, JSON, CSV): the masks of attention for texts of --length tokens, "
            "and the learning rate of a recipe.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object instead of text.")] = False,
) -> None:
    """Show the parts, size and cost of a model.

    The parts are shown with their shapes and numbers of parameters, followed by FLOPs per token, memory, and the
    maximum input length.
    """
    import json
    import shutil

    from dragoman.base.errors import ConfigError
    from dragoman.tasks.description import describe

    arguments = list(model or [])
    if not arguments:
        raise ConfigError(
            "nothing to describe: give a YAML file, a model folder, or settings such as model.preset=base"
        )
    path = Path(arguments.pop(0)) if "=" not in arguments[0] and arguments[1:2] != ["="] else None
    check_settings(arguments, "model.width=256")
    if path is None:
        check_setting_names(None, arguments)
    description = describe(
        path, arguments, vocabulary=_parse_sizes(vocabulary), pairs=pairs, length=length, depth=depth, draw=draw
    )
    if as_json:
        print(json.dumps(description.as_json(), ensure_ascii=False, indent=2))
    else:
        print_results(description.text(shutil.get_terminal_size((100, 24)).columns))


def _parse_sizes(vocabulary: str | None) -> tuple[int, ...]:
    """Parse vocabulary sizes: one for a shared vocabulary, or one per side. Return an empty tuple for None."""
    from dragoman.base.errors import ConfigError

    if vocabulary is None:
        return ()
    parts = [part.strip() for part in vocabulary.split(",")]
    if len(parts) > 2 or not all(part.isdecimal() and 0 < int(part) <= 100_000_000 for part in parts):
        raise ConfigError(
            f"--vocabulary {vocabulary} is neither a size, such as 37000, nor two sizes, such as 8000,10000"
        )
    return tuple(int(part) for part in parts)
