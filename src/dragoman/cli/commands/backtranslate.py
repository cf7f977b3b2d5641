"""`dragoman backtranslate`: generate synthetic training pairs from target-language text."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.arguments import check_settings
from dragoman.cli.command import command
from dragoman.cli.option_groups import SamplingOptions, split_tags
from dragoman.cli.options import BatchSize, Beam, Device, Divide, LengthPenalty, Quiet, Tags, Threads, To


class Method(StrEnum):
    """Methods of generating source sentences."""

    beam = "beam"
    sample = "sample"


@command(
    "dragoman backtranslate runs/de-en --input news.de --output pairs.tsv",
    "dragoman backtranslate runs/de-en --input news.de --output pairs.tsv.gz \\\n"
    "  --method sample --top-k 10 max_ratio=6",
    files="--input",
    interrupted="interrupted: completed work is kept. Repeat the same command to resume",
)
def backtranslate(
    model: Annotated[
        Path, typer.Argument(help="Folder of a reverse-direction model, which translates the language of --input.")
    ],
    filters: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...",
            help="Filters of the pairs: empty, duplicates, unfinished and unusual_length are true or false; max_tokens "
            "(250), copied (0.8), max_ratio (4), repeats (4) and min_score (-1.5 with --method beam) are limits, or "
            "null.",
            show_default=False,
        ),
    ] = None,
    *,
    text: Annotated[
        Path,
        typer.Option(
            "--input", "-i", help="Target-language text, one sentence per line: plain, .gz, .bz2, .xz or .zst."
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            "--out",
            help="Output file with lines of synthetic source TAB target: plain, .gz, .bz2, .xz or .zst.",
        ),
    ],
    language: Annotated[
        str | None,
        typer.Option("--language", help="Language of the text, checked against the model's source language."),
    ] = None,
    to: To = None,
    tags: Tags = None,
    method: Annotated[
        Method, typer.Option("--method", help="beam: the best translation; sample: a random one.")
    ] = Method.beam,
    beam: Beam = None,
    length_penalty: LengthPenalty = None,
    divide: Divide = True,
    sampling_options: SamplingOptions,
    batch_size: BatchSize = 64,
    device: Device = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Generate training pairs from target-language text.

    A model of the reverse direction translates the text. Repeat an interrupted command to resume it. The command
    reports the number of lines that each rule drops, and prints the YAML that adds the pairs to a recipe with the tag
    bt.
    """
    from dragoman.base.errors import reject_options
    from dragoman.base.log import info
    from dragoman.tasks.augmentation.backtranslate import backtranslate

    check_settings(filters or [], "max_ratio=6", "--input FILE")
    sampling = None
    if method is Method.beam:
        reject_options(sampling_options.by_name(), "with --method sample")
    else:
        reject_options({"--beam": beam, "--length-penalty": length_penalty}, "with --method beam")
        sampling = sampling_options.sampling()
    pairs = backtranslate(
        model,
        text,
        output,
        language=language,
        sampling=sampling,
        beam=beam,
        length_penalty=length_penalty,
        to=to,
        tags=split_tags(tags),
        divide=divide,
        filters=filters or (),
        batch_size=batch_size,
        device=device,
        threads=threads,
    )
    info(str(pairs))
    if pairs.kept:
        print(pairs.recipe())
