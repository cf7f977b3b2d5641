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
        help="Translate all files, folders and patterns of --input with Ray, on this machine's cluster or, if it "
        "has none, on this machine alone; --output is a folder. Repeat the command to resume.",
    ),
]
ActorsOption = Annotated[
    int | None,
    typer.Option(
        "--actors",
        min=1,
        help="With --cluster: number of model processes, with --threads processors each (default: one per machine, "
        "or, with --threads, as many as fit).",
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
    models: Path | Sequence[Path], inputs: Sequence[Path], output: Path | None, cluster: str, **how: Any
) -> None:
    """Translate files on a cluster. how: further arguments of `dragoman.translate_shards`."""
    from dragoman.base.errors import ConfigError
    from dragoman.base.log import info
    from dragoman.translation.bulk.translate_shards import translate_shards

    if not inputs or output is None:
        raise ConfigError("--cluster translates files: name them with --input, and an output folder with --output")
    done = translate_shards(models, list(inputs), output, cluster=cluster, **how)
    info(f"Translated {done.records:,} line(s) in {done.shards:,} shard(s) to {done.folder}.")


def check_patterns(settings: Sequence[str]) -> None:
    """Raise ConfigError if a file pattern was not quoted, so that the shell expanded it to several arguments."""
    from dragoman.base.errors import ConfigError

    for argument in settings:
        if "=" not in argument and Path(argument).exists():
            raise ConfigError(
                f"'{argument}' is not a setting. For several files use a quoted pattern, as in --input 'part-*.txt', a "
                "folder, or one --input per file"
            )
