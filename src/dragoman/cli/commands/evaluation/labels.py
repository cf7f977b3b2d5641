"""`dragoman evaluate labels`: compare predicted labels with those of a test set."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.command import command
from dragoman.cli.commands.evaluation.options import Compare, Json, TestSettings, print_tests
from dragoman.cli.options import Device, Model, PredictionEngine, PredictionPrecision, Quiet, TaskName, Threads


@command(
    "dragoman evaluate labels runs/sentiment",
    "dragoman evaluate labels runs/small --compare runs/large --test reviews.tsv",
    files="--test",
)
def labels(
    model: Model,
    settings: TestSettings = None,
    *,
    test: Annotated[
        list[Path] | None,
        typer.Option(
            "--test",
            help="Labelled examples, or the nodes of a graph; repeatable (default: the examples that training held "
            "out).",
        ),
    ] = None,
    compare: Compare = None,
    confusion: Annotated[
        Path | None,
        typer.Option(
            "--confusion",
            help="Also draw the confusion matrix, as SVG, PNG, JSON or CSV, according to the suffix.",
        ),
    ] = None,
    vectors: Annotated[
        bool,
        typer.Option(
            "--vectors",
            help="Correlate the cosine of the vectors of the two texts of each pair with the labels, instead of "
            "predicting labels.",
        ),
    ] = False,
    task: TaskName = None,
    as_json: Json = False,
    engine: PredictionEngine = None,
    precision: PredictionPrecision = None,
    device: Device = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Compare predicted labels with those of a test set.

    The head of the model determines the metrics: accuracy and F1 of classes and tags, correlations of numbers, exact
    match and F1 of answers, or bracket F1 of trees.
    """
    from dragoman.base.errors import ConfigError, reject_options
    from dragoman.base.files import check_new_files
    from dragoman.evaluation.evaluate_labels import evaluate_labels
    from dragoman.evaluation.stored_test_set import StoredExamples, stored_examples

    if test:
        tests = [StoredExamples(each, settings or (), task) for each in test]
    else:
        reject_options({"KEY=VALUE": settings}, "with --test FILE")
        tests = stored_examples(model, task)
    if confusion is not None and len(tests) > 1:
        raise ConfigError("--confusion draws the matrix of one test set: give --test once, or --task")
    check_new_files({"--confusion": confusion}, *(each.path for each in tests))
    arguments: dict[str, Any] = {"vectors": vectors, "device": device, "threads": threads}
    arguments |= {name: value for name, value in (("engine", engine), ("precision", precision)) if value is not None}
    models = [model, *(compare or [])]
    results = [(path, evaluate_labels(models, path, how, task=name, **arguments)) for path, how, name in tests]
    if confusion is not None:
        matrix = results[0][1].reports[0].confusion
        if matrix is None:
            raise ConfigError(f"{model} does not predict classes of texts: leave out --confusion")
        from dragoman.figures.confusion import label_confusion

        label_confusion(matrix).write(confusion)
    print_tests(results, as_json)
