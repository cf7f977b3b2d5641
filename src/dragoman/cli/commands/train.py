"""`dragoman train`: train a model from two text files or a recipe."""

import json
import time
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.base.log import info
from dragoman.cli.arguments import check_options, corpus_options, split_recipe
from dragoman.cli.command import command
from dragoman.cli.options import PairsFile, Quiet, ValidPairs, ValidSource, ValidTarget
from dragoman.cli.results import print_results
from dragoman.cli.setting_names import check_setting_names

if TYPE_CHECKING:
    from dragoman.training.run.result import TrainingResult

Text = Path | None


@command(
    "dragoman train --pairs pairs.tsv --out runs/en-de",
    "dragoman train recipe.yaml train.max_minutes=30",
    takes_run_settings=True,
    interrupted="interrupted before the first update: repeat the same command",
)
def train(
    recipe: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RECIPE.yaml] [KEY=VALUE]...",
            help="YAML recipe, followed by settings that override it, such as train.max_minutes=30.",
            show_default=False,
        ),
    ] = None,
    *,
    source: Annotated[
        Text,
        typer.Option(
            "--source", help="Source side of the training corpus, one sentence per line; plain, .gz, .bz2, .xz or .zst."
        ),
    ] = None,
    target: Annotated[
        Text, typer.Option("--target", help="Target side of the training corpus, one sentence per line.")
    ] = None,
    pairs: PairsFile = None,
    valid_source: ValidSource = None,
    valid_target: ValidTarget = None,
    valid_pairs: ValidPairs = None,
    out: Annotated[Text, typer.Option("--out", help="Run folder to write; it becomes the model folder.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the run in --out.")] = False,
    profile: Annotated[
        bool,
        typer.Option(
            "--profile",
            help="Profile updates 6 to 30, and write the times to stderr and to profile.txt and profile.json in --out.",
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Train a model.

    Without a validation set, pairs, examples or documents are held out for validation and testing (data.held_out).

    `dragoman settings` lists all settings; the config.yaml of a run contains the values used.
    """
    from dragoman.base.errors import ConfigError

    begun = time.monotonic()
    path, arguments = split_recipe(recipe or [])
    options = {
        **corpus_options(source, target, pairs),
        **corpus_options(valid_source, valid_target, valid_pairs, valid=True),
        "out": out,
    }
    overrides = [f"{key}={json.dumps(str(value))}" for key, value in options.items() if value is not None]
    overrides += arguments
    check_options(options, arguments)
    check_setting_names(path, overrides)
    if not (resume or path or arguments or source or pairs):
        raise ConfigError("nothing to train on: give a recipe (….yaml), or --source and --target, or --pairs")
    if resume and path is None and source is None and pairs is None:
        path = _config_of_run(out, arguments)
    if path is None and not any(each.startswith("out=") for each in overrides):
        raise ConfigError("there is no folder for the run: give --out FOLDER")
    from dragoman.tasks.train import train
    from dragoman.training.run.run_clock import started_at

    with started_at(begun):
        result = train(path, overrides, resume=resume, profile=profile)
    print_result(result)


def print_result(result: "TrainingResult") -> None:
    """Print the result of a run to stdout; with several processes, only in the first one."""
    if result.first:
        print_results(result)
        if result.verdict is not None:
            folder = quote(str(result.folder))
            info(
                f"Next: `dragoman evaluate {folder}` scores the test set, `dragoman translate {folder}` reads lines, "
                f"`dragoman serve {folder}` opens a page"
            )


def _config_of_run(out: Path | None, arguments: list[str]) -> Path:
    from dragoman.base.errors import ConfigError

    out_setting = next((argument.removeprefix("out=") for argument in arguments if argument.startswith("out=")), None)
    folder = out if out is not None else Path(out_setting) if out_setting else None
    if folder is None:
        runs = sorted(Path().glob("*/*/training/step-*"))
        example = str(runs[-1].parents[1]) if runs else "FOLDER"
        raise ConfigError(f"--resume needs the folder of the run, and no other option or setting: --out {example}")
    from dragoman.tasks.train import run_settings

    return run_settings(folder)
