"""`dragoman lexicon`: extract a bilingual dictionary from a parallel text."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.arguments import parallel_text
from dragoman.cli.command import command
from dragoman.cli.options import PairsFile, Quiet, SourceFile, TargetFile, Threads


@command("dragoman lexicon --source train.en --target train.de --output lexicon.tsv")
def lexicon(
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...",
            help="Settings of the aligner, such as method.kind=fertility.",
            show_default=False,
        ),
    ] = None,
    *,
    source: SourceFile = None,
    target: TargetFile = None,
    pairs: PairsFile = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File for the dictionary, compressed according to its suffix (default: stdout)."
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option("--model", help="Folder of a trained aligner (default: train an aligner on the text itself)."),
    ] = None,
    format: Annotated[
        str,
        typer.Option(
            "--format",
            help="tsv: source, target, p(target|source), p(source|target) and count. glossary: a draft for --glossary.",
        ),
    ] = "tsv",
    min_count: Annotated[
        int, typer.Option("--min-count", min=1, help="Smallest number of occurrences of a translation.")
    ] = 3,
    min_probability: Annotated[
        float, typer.Option("--min-probability", min=0, max=1, help="Smallest value of both probabilities.")
    ] = 0.1,
    translations: Annotated[
        int, typer.Option("--translations", min=1, help="Largest number of translations per word.")
    ] = 3,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Extract a bilingual dictionary from a parallel text.

    It contains the words of the source, their translations of one to three words, and how often and how probably they
    translate each other. Words are separated by whitespace.
    """
    import sys

    from dragoman.base.files import check_new_files
    from dragoman.statistical.alignment.dictionary import lexicon

    sources, targets, settings = parallel_text(source, target, pairs, settings or [])
    check_new_files({"--output": output}, source, target, pairs)
    dictionary = lexicon(
        sources,
        targets,
        output,
        model=model,
        format=format,  # type: ignore[arg-type]  # checked by `lexicon`
        min_count=min_count,
        min_probability=min_probability,
        translations=translations,
        overrides=settings,
        threads=threads,
        quiet=quiet,
    )
    if output is None:
        sys.stdout.write(dictionary.tsv() if format == "tsv" else dictionary.glossary())
