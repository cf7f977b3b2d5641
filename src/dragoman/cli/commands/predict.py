"""`dragoman predict`: predict the labels of texts."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.arguments import check_settings
from dragoman.cli.command import command
from dragoman.cli.options import Device, Model, PredictionEngine, PredictionPrecision, Quiet, TaskName, Threads


@command(
    "dragoman predict runs/sentiment --input reviews.txt",
    "dragoman predict runs/sentiment -i reviews.csv format=csv columns.text=review",
    usual="--input --output --format --draw --vectors --fills --task --engine --precision --device --threads --quiet",
    files="--input",
)
def predict(
    model: Model,
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...",
            help="Settings of the input (docs/reference/labels.md), such as format=csv.",
            show_default=False,
        ),
    ] = None,
    *,
    source: Annotated[
        Path | None,
        typer.Option(
            "--input",
            "-i",
            help="Texts, one per line, or any format of labelled examples, whose labels are ignored; plain, .gz, "
            ".bz2, .xz or .zst (default: stdin).",
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Predictions (default: stdout).")] = None,
    output_format: Annotated[
        str,
        typer.Option(
            "--format",
            help="jsonl: one JSON object per example. tsv: number and prediction, as in GLUE. conll: one word per line "
            "with its tag in the last column. squad: a JSON object with the answer of each question. squad_nbest: "
            "the best answers of each question, with probabilities. trees: the tree of each sentence in brackets, one "
            "per line. drawing: each tree drawn as text. table: lines for a reader. auto: trees for a parser, else "
            "table on a terminal, and jsonl in files and pipes.",
        ),
    ] = "auto",
    draw: Annotated[
        Path | None,
        typer.Option("--draw", help="Also draw the trees that a parser predicts into this SVG file."),
    ] = None,
    vectors: Annotated[
        bool,
        typer.Option(
            "--vectors",
            help="Write the vector of each text instead of predictions: the mean of its states, scaled to length 1. As "
            "JSON objects, or as an array if the name of --output ends in .npy.",
        ),
    ] = False,
    batch_tokens: Annotated[
        int,
        typer.Option("--batch-tokens", min=1, help="Number of tokens per batch; does not affect the predictions."),
    ] = 4096,
    fills: Annotated[
        int, typer.Option("--fills", min=1, help="Number of tokens that a masked language model gives per <mask>.")
    ] = 5,
    task: TaskName = None,
    engine: PredictionEngine = None,
    precision: PredictionPrecision = None,
    device: Device = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Predict labels, tags, trees, answers or masked tokens.

    The model determines what is predicted: the class of each text, a number, the tags of its words, its tree, the
    answer to a question, or the tokens at each <mask>. There is one prediction for each example, in the same order.
    """
    from typing import cast

    from dragoman.base.files import check_new_files
    from dragoman.inference.prediction.formats import OutputFormat
    from dragoman.inference.prediction.predict import predict

    check_new_files({"--output": output, "--draw": draw}, source)
    check_settings(settings or [], "columns.text=review", "--input FILE")
    written = sys.stdout if output is None else output
    predict(
        model,
        "/dev/stdin" if source is None else source,
        written,
        settings or (),
        format=cast("OutputFormat", output_format),
        vectors=vectors,
        batch_tokens=batch_tokens,
        device=device,
        threads=threads,
        fills=fills,
        task=task,
        engine=engine or "auto",
        precision=precision or "float32",
        draw=draw,
    )
