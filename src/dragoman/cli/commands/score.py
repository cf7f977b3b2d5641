"""`dragoman score`: compute the probability of given translations or texts under a model."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.option_groups import split_tags
from dragoman.cli.options import (
    BatchSize,
    Device,
    DocumentsOption,
    Ensemble,
    Heading,
    Model,
    Quiet,
    Stride,
    Tags,
    Threads,
    To,
)


@command(
    "dragoman score runs/en-de --source test.en --target test.de",
    "dragoman score runs/lm --target text.txt",
    files="--source and --target",
)
def score(
    model: Model,
    target: Annotated[
        Path, typer.Option("--target", help="Translations, one per line; for a language model, the text to score.")
    ],
    *,
    source: Annotated[Path | None, typer.Option("--source", help="Source sentences of the translations.")] = None,
    ensemble: Ensemble = None,
    to: To = None,
    tags: Tags = None,
    documents: DocumentsOption = None,
    heading: Heading = None,
    stride: Stride = None,
    batch_size: BatchSize = 64,
    device: Device = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Compute the log-probability of given translations or texts.

    Prints one log-probability (nats) per pair or document to stdout, and the total perplexity to stderr. A masked
    language model gives pseudo-log-likelihoods.
    """
    from dragoman.base.log import info
    from dragoman.evaluation.score import score

    scores = score(
        [model, *ensemble] if ensemble else model,
        target,
        source,
        to=to,
        tags=split_tags(tags),
        documents=documents,
        heading=heading,
        stride=stride,
        batch_size=batch_size,
        device=device,
        threads=threads,
    )
    for each in scores.each:
        print(f"{each.log_probability:.6f}")
    info(str(scores))
