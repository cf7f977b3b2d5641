"""`dragoman translate-shards`: translate many files on a Ray cluster."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.option_groups import DecodingOptions, RequestOptions
from dragoman.cli.options import (
    BatchSize,
    Divide,
    Engine,
    Ensemble,
    Model,
    OnError,
    Precision,
    Quiet,
    SearchSettings,
    Threads,
)


@command(
    "dragoman translate-shards runs/en-de --input texts --output translated",
    "dragoman translate-shards runs/en-de --input 'part-*.jsonl' --output out \\\n"
    "  --source-field text --cluster ray://head:10001",
    usual="--input --output --cluster --actors --threads --source-field --target-field --to --beam --on-error --quiet",
    files="--input",
    interrupted="interrupted: completed shards are kept. Repeat the same command to resume",
)
def translate_shards(
    model: Model,
    search: SearchSettings = None,
    *,
    inputs: Annotated[
        list[Path],
        typer.Option(
            "--input",
            "-i",
            help="Files, folders or quoted patterns: lines of text, also compressed, JSON Lines (.jsonl) or Parquet "
            "(.parquet); repeatable.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the translated files and their manifest.")],
    cluster: Annotated[
        str,
        typer.Option(
            "--cluster",
            metavar="auto|local|HOST:PORT|ray://HOST:PORT",
            help="Ray cluster. auto: that of this machine, or this machine alone if it is not part of a cluster.",
        ),
    ] = "auto",
    actors: Annotated[
        int | None,
        typer.Option(
            "--actors",
            min=1,
            help="Number of model processes, each with --threads processors (default: one per machine or, with "
            "--threads, as many as the processors allow).",
        ),
    ] = None,
    threads: Threads = None,
    source_field: Annotated[
        str | None, typer.Option("--source-field", help="JSON Lines field or Parquet column to translate.")
    ] = None,
    target_field: Annotated[
        str | None,
        typer.Option("--target-field", help="New field for the translation (default: translation)."),
    ] = None,
    ensemble: Ensemble = None,
    request: RequestOptions,
    divide: Divide = True,
    on_error: OnError = "stop",
    decoding: DecodingOptions,
    batch_size: BatchSize = 64,
    engine: Engine = "auto",
    precision: Precision = "auto",
    quiet: Quiet = False,
) -> None:
    """Translate many files on the CPUs of a Ray cluster. Repeat an interrupted command to resume it.

    Each output file has the name of its input, and as many records in the same order. The paths must be the same on all
    machines.
    """
    from dragoman.addons.bulk.translate_shards import translate_shards
    from dragoman.base.log import info
    from dragoman.cli.arguments import check_settings

    _check_patterns(search or [])
    check_settings(search or [], "search.minimum_length=3", "--input FILE")
    settings, sampling = decoding.resolve(request, search)
    settings["divide"] = divide
    result = translate_shards(
        [model, *ensemble] if ensemble else model,
        inputs,
        output,
        cluster=cluster,
        actors=actors,
        threads=threads,
        source_field=source_field,
        target_field=target_field,
        sampling=sampling,
        batch_size=batch_size,
        engine=engine,
        precision=precision,
        on_error=on_error,
        **settings,
    )
    info(f"Translated {result.records:,} line(s) in {result.shards:,} shard(s) to {result.folder}.")


def _check_patterns(settings: list[str]) -> None:
    """Raise ConfigError for an argument that is a file, because the shell has expanded an unquoted pattern."""
    from dragoman.base.errors import ConfigError

    for argument in settings:
        if "=" not in argument and Path(argument).exists():
            raise ConfigError(
                f"'{argument}' is not a setting. To translate several files, use a folder, one --input per file, or a "
                "quoted pattern, as in --input 'part-*.txt'"
            )
