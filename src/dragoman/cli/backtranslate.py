"""`dragoman backtranslate`: generates synthetic training pairs from text of the target language."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.groups import grouped
from dragoman.cli.options import (
    BatchSize,
    Beam,
    Device,
    LengthPenalty,
    Quiet,
    SamplingOptions,
    Tags,
    Threads,
    To,
    split_tags,
)


class Method(StrEnum):
    """How sources are generated."""

    beam = "beam"
    sample = "sample"


@grouped
def backtranslate(
    model: Annotated[
        Path, typer.Argument(help="Folder of a model of the reverse direction, which reads the language of --input.")
    ],
    text: Annotated[
        Path,
        typer.Option("--input", "-i", help="Target-language text, one sentence per line: plain, .gz, .xz or .zst."),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", "--out", help="Output file of lines synthetic source TAB target: plain, .gz, .xz or .zst."
        ),
    ],
    language: Annotated[
        str | None,
        typer.Option("--language", help="Language of the text, checked against the one that the model reads."),
    ] = None,
    to: To = None,
    tags: Tags = None,
    method: Annotated[
        Method, typer.Option("--method", help="beam: the best translation; sample: a random one.")
    ] = Method.beam,
    beam: Beam = None,
    length_penalty: LengthPenalty = None,
    *,
    drawing: SamplingOptions,
    empty: Annotated[bool | None, typer.Option("--empty/--no-empty", help="Drop pairs with a blank side.")] = None,
    duplicates: Annotated[
        bool | None, typer.Option("--duplicates/--no-duplicates", help="Drop repeated lines.")
    ] = None,
    unfinished: Annotated[
        bool | None,
        typer.Option("--unfinished/--no-unfinished", help="Drop translations that reached the length limit."),
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", help="Maximum subword tokens of a line (default: 250); 0: no limit.")
    ] = None,
    copied: Annotated[
        float | None,
        typer.Option(
            "--copied",
            help="Maximum share of the line's words that its translation repeats in order (default: 0.8); 0: no limit.",
        ),
    ] = None,
    max_ratio: Annotated[
        float | None,
        typer.Option("--max-ratio", help="Maximum ratio of the lengths of the two sides (default: 4); 0: no limit."),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option("--repeats", help="Repetitions of a phrase in a row that make a loop (default: 4); 0: no limit."),
    ] = None,
    min_score: Annotated[
        float | None,
        typer.Option(
            "--min-score",
            help="Minimum mean log-probability per token, in nats (default: -1.5 with beam, else 0); 0: no limit.",
        ),
    ] = None,
    batch_size: BatchSize = 64,
    device: Device = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Generate source sentences for target-language text with a model of the reverse direction, as training pairs.

    Repeat an interrupted command to resume it. Dropped lines are counted by rule. The command prints the YAML that adds
    the pairs to a recipe, with the tag bt.
    """
    from dragoman.augmentation.backtranslate import backtranslate
    from dragoman.base.errors import reject_options
    from dragoman.base.log import info

    drawn = None
    if method is Method.beam:
        reject_options(drawing.given(), "with --method sample")
    else:
        reject_options({"--beam": beam, "--length-penalty": length_penalty}, "with --method beam")
        drawn = drawing.sampling()
    switches = {"empty": empty, "duplicates": duplicates, "unfinished": unfinished}
    limits = {
        "max_tokens": max_tokens,
        "copied": copied,
        "max_ratio": max_ratio,
        "repeats": repeats,
        "min_score": min_score,
    }
    filters: dict[str, object] = {name: value for name, value in switches.items() if value is not None}
    filters |= {name: value or None for name, value in limits.items() if value is not None}
    pairs = backtranslate(
        model,
        text,
        output,
        language=language,
        sampling=drawn,
        beam=beam,
        length_penalty=length_penalty,
        to=to,
        tags=split_tags(tags),
        filters=filters,
        batch_size=batch_size,
        device=device,
        threads=threads,
    )
    info(str(pairs))
    if pairs.kept:
        print(pairs.recipe())
