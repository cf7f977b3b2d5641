"""`dragoman backtranslate`: generate synthetic training pairs from target-language text."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.option_groups import SamplingOptions, split_tags
from dragoman.cli.options import BatchSize, Beam, Device, Divide, LengthPenalty, Quiet, Tags, Threads, To


class Method(StrEnum):
    """Methods of generating source sentences."""

    beam = "beam"
    sample = "sample"


@command(
    "dragoman backtranslate runs/de-en --input news.de --output pairs.tsv",
    "dragoman backtranslate runs/de-en --input news.de --output pairs.tsv.gz \\\n  --method sample --top-k 10",
    usual="--input --output --to --method --beam --temperature --top-k --seed --max-ratio --min-score "
    "--batch-size --device --threads --quiet",
    files="--input",
    interrupted="interrupted: completed work is kept. Repeat the same command to resume",
)
def backtranslate(
    model: Annotated[
        Path, typer.Argument(help="Folder of a reverse-direction model, which translates the language of --input.")
    ],
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
    *,
    sampling_options: SamplingOptions,
    empty: Annotated[bool | None, typer.Option("--empty/--no-empty", help="Drop pairs with a blank side.")] = None,
    duplicates: Annotated[
        bool | None, typer.Option("--duplicates/--no-duplicates", help="Drop repeated lines.")
    ] = None,
    unfinished: Annotated[
        bool | None,
        typer.Option("--unfinished/--no-unfinished", help="Drop translations that reached the length limit."),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option("--max-tokens", help="Maximum number of subword tokens per line (default: 250); 0: no limit."),
    ] = None,
    copied: Annotated[
        float | None,
        typer.Option(
            "--copied",
            help="Maximum share of a line's words that its translation copies in order (default: 0.8); 0: no limit.",
        ),
    ] = None,
    max_ratio: Annotated[
        float | None,
        typer.Option(
            "--max-ratio",
            help="Maximum factor between a pair's length ratio and the usual one (default: 4); 0: no limit.",
        ),
    ] = None,
    unusual_length: Annotated[
        bool | None,
        typer.Option(
            "--unusual-length/--no-unusual-length",
            help="Drop translations much shorter or longer than the model's training pairs suggest.",
        ),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(
            "--repeats",
            help="Number of consecutive repetitions of a phrase that count as a loop (default: 4); 0: no limit.",
        ),
    ] = None,
    min_score: Annotated[
        float | None,
        typer.Option(
            "--min-score",
            help="Minimum mean log-probability per token, in nats (default: -1.5 with --method beam, otherwise 0); 0: "
            "no limit.",
        ),
    ] = None,
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

    sampling = None
    if method is Method.beam:
        reject_options(sampling_options.by_name(), "with --method sample")
    else:
        reject_options({"--beam": beam, "--length-penalty": length_penalty}, "with --method beam")
        sampling = sampling_options.sampling()
    switches = {
        "empty": empty,
        "duplicates": duplicates,
        "unfinished": unfinished,
        "unusual_length": unusual_length,
    }
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
        sampling=sampling,
        beam=beam,
        length_penalty=length_penalty,
        to=to,
        tags=split_tags(tags),
        divide=divide,
        filters=filters,
        batch_size=batch_size,
        device=device,
        threads=threads,
    )
    info(str(pairs))
    if pairs.kept:
        print(pairs.recipe())
