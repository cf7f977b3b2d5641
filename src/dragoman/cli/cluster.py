"""`dragoman translate --cluster`: many files in, as many of the same names out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="auto|local|HOST:PORT|ray://HOST:PORT",
        help="Translate all of --input, files, folders or patterns, with Ray: on the cluster that this machine belongs "
        "to, else on this machine alone; --output is a folder. The same command goes on after a kill.",
    ),
]
ActorsOption = Annotated[
    int | None,
    typer.Option(
        "--actors",
        min=1,
        help="With --cluster: processes that hold the model, of --threads processors each (default: one a machine, or "
        "as many of --threads as there is room for).",
    ),
]
SourceField = Annotated[
    str | None,
    typer.Option("--source-field", help="With --cluster: the field of JSON Lines, or column of Parquet, to translate."),
]
TargetField = Annotated[
    str | None,
    typer.Option(
        "--target-field", help="With --cluster: the field that the translation becomes (default: translation)."
    ),
]


def translate_on_cluster(
    models: Path | Sequence[Path], inputs: Sequence[Path], output: Path | None, cluster: str, **how: Any
) -> None:
    """how: as `dragoman.translate_shards` takes it."""
    from dragoman.base.errors import ConfigError
    from dragoman.base.log import info
    from dragoman.translation.bulk.translate_shards import translate_shards

    if not inputs or output is None:
        raise ConfigError(
            "--cluster translates files: name them with --input, and a folder for the output with --output"
        )
    done = translate_shards(models, list(inputs), output, cluster=cluster, **how)
    info(f"{done.records:,} line(s) in {done.shards:,} shard(s) of {done.folder} are translated.")


def check_patterns(settings: Sequence[str]) -> None:
    """Raises ConfigError where a pattern of files was not quoted, so that the shell has made arguments of them."""
    from dragoman.base.errors import ConfigError

    for argument in settings:
        if "=" not in argument and Path(argument).exists():
            raise ConfigError(
                f"'{argument}' is no setting: several files are a pattern in quotes, as in --input 'part-*.txt', a "
                "folder, or --input once a file"
            )
