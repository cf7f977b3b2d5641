"""`dragoman translate --cluster`: translate many files on a Ray cluster."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="auto|local|HOST:PORT|ray://HOST:PORT",
        help="Translate all files, folders and patterns of --input with Ray; --output is a folder. auto: use the "
        "cluster of this machine, or this machine alone if it is not part of a cluster. Repeat the command to resume.",
    ),
]
ActorsOption = Annotated[
    int | None,
    typer.Option(
        "--actors",
        min=1,
        help="With --cluster: number of model processes, each with --threads processors (default: one per machine or, "
        "with --threads, as many as the processors allow).",
    ),
]
SourceField = Annotated[
    str | None,
    typer.Option("--source-field", help="With --cluster: JSON Lines field or Parquet column to translate."),
]
TargetField = Annotated[
    str | None,
    typer.Option("--target-field", help="With --cluster: new field for the translation (default: translation)."),
]


def translate_on_cluster(
    models: Path | Sequence[Path], inputs: Sequence[Path], output: Path | None, cluster: str, **options: Any
) -> None:
    """Translate files on a cluster. options: further arguments of `dragoman.translate_shards`."""
    from dragoman.addons.bulk.translate_shards import translate_shards
    from dragoman.base.errors import ConfigError
    from dragoman.base.log import info

    if not inputs or output is None:
        raise ConfigError("--cluster needs input files and an output folder: set --input and --output")
    result = translate_shards(models, list(inputs), output, cluster=cluster, **options)
    info(f"Translated {result.records:,} line(s) in {result.shards:,} shard(s) to {result.folder}.")


def check_patterns(settings: Sequence[str]) -> None:
    """Raise ConfigError for an argument that is a file, because the shell has expanded an unquoted pattern."""
    from dragoman.base.errors import ConfigError

    for argument in settings:
        if "=" not in argument and Path(argument).exists():
            raise ConfigError(
                f"'{argument}' is not a setting. To translate several files, use a folder, one --input per file, or a "
                "quoted pattern, as in --input 'part-*.txt'"
            )
