"""`dragoman align`: align the words of a parallel text."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.arguments import parallel_text
from dragoman.cli.command import command
from dragoman.cli.options import PairsFile, Quiet, SourceFile, TargetFile, Threads


@command(
    "dragoman align --source train.en --target train.de --output links.txt",
    "dragoman align --pairs train.tsv --save aligner",
)
def align(
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...",
            help="Settings of the aligner, such as method.iterations=10 or words.lowercase=false.",
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
            "--output", "-o", help="File for the alignments, compressed according to its suffix (default: stdout)."
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            help="Alignment model: ibm1, ibm2, diagonal (known as fast_align), hmm or fertility (default: fertility; "
            "hmm for large texts).",
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option("--model", help="Folder of a trained aligner (default: train an aligner on the text itself)."),
    ] = None,
    save: Annotated[Path | None, typer.Option("--save", help="New model folder for the trained aligner.")] = None,
    symmetrize: Annotated[
        str | None,
        typer.Option(
            "--symmetrize",
            help="Combination of the links of both directions: intersection, union, grow-diag, grow-diag-final, "
            "grow-diag-final-and, forward, reverse and others (default: grow-diag, which usually has a low alignment "
            "error rate; grow-diag-final-and is usual for phrase extraction).",
        ),
    ] = None,
    reverse: Annotated[
        bool, typer.Option("--reverse", help="Write links as target-source instead of source-target.")
    ] = False,
    scores: Annotated[
        Path | None,
        typer.Option(
            "--scores",
            help="File for a score per line: the mean log-probability of the words of the pair, at most 0. Pairs that "
            "are not translations have low scores.",
        ),
    ] = None,
    draw: Annotated[
        Path | None, typer.Option("--draw", help="PNG file for a picture of the alignment of a sentence pair.")
    ] = None,
    draw_line: Annotated[
        int, typer.Option("--draw-line", min=1, help="Line number of the sentence pair for --draw.")
    ] = 1,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Align the words of a parallel text.

    Each output line contains the links of a sentence pair in Pharaoh format, such as 0-0 1-2, which link word 0 of the
    source to word 0 of the target, and word 1 to word 2. Words are separated by whitespace. Blank lines have no links.
    """
    import sys

    from dragoman.base.files import check_new_files
    from dragoman.statistical.alignment.align import align

    sources, targets, settings = parallel_text(source, target, pairs, settings or [])
    check_new_files({"--output": output, "--scores": scores, "--draw": draw}, source, target, pairs)
    aligned = align(
        sources,
        targets,
        output,
        model=model,
        save=save,
        method=method,
        symmetrization=symmetrize,
        reverse=reverse,
        scores=scores,
        draw=draw,
        draw_line=draw_line,
        overrides=settings,
        threads=threads,
    )
    if output is None:
        sys.stdout.write(aligned.pharaoh())
