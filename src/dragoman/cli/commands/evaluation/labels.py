"""`dragoman evaluate labels`: compare predicted labels with those of a test set."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.command import command
from dragoman.cli.commands.evaluation.options import Compare, Json, TestSettings, print_tests
from dragoman.cli.options import Device, PredictionEngine, PredictionPrecision, Quiet, Threads

if TYPE_CHECKING:
    from dragoman.base.settings.load import Overrides


@command(
    "dragoman evaluate labels runs/small --compare runs/large --test reviews.tsv",
    "dragoman evaluate labels --test gold.conll --hypothesis predicted.conll",
    usual="--test --hypothesis --prm --compare --confusion --vectors --task --json --device --threads --quiet",
    files="--test and --hypothesis",
)
def labels(
    model: Annotated[
        Path | None,
        typer.Argument(
            help="Model folder, such as one written by `dragoman train --out`; or none, for --hypothesis.",
            show_default=False,
        ),
    ] = None,
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
    hypothesis: Annotated[
        list[Path] | None,
        typer.Option(
            "--hypothesis",
            help="Predictions of any program, instead of a model; repeat it to compare several by paired bootstrap. "
            "Without --test, tagged words with the correct tag in the column before.",
        ),
    ] = None,
    prm: Annotated[
        Path | None,
        typer.Option(
            "--prm", help="Parameter file of EVALB, for trees in --hypothesis (default: the rules of COLLINS.prm)."
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
    task: Annotated[
        str | None,
        typer.Option(
            "--task",
            help="Name of the task, for a model that predicts the labels of several tasks. With --hypothesis, if the "
            "files do not show it: tagging, classification, regression, parsing or question_answering.",
        ),
    ] = None,
    as_json: Json = False,
    engine: PredictionEngine = None,
    precision: PredictionPrecision = None,
    device: Device = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Compare predicted labels with those of a test set.

    The labels are predicted by a model, or by any program that has written them to --hypothesis. Their kind, or the
    head of the model, determines the metrics: accuracy and F1 of classes and tags, correlations of numbers, exact
    match and F1 of answers, or bracket F1 of trees.
    """
    from dragoman.base.errors import ConfigError, reject_options
    from dragoman.base.files import check_new_files
    from dragoman.evaluation.evaluate_labels import evaluate_labels
    from dragoman.evaluation.stored_test_set import StoredExamples, stored_examples

    if model is not None and hypothesis and "=" in str(model):  # without a model, the first argument is a setting
        model, settings = None, [str(model), *(settings or [])]
    tests: Sequence[tuple[Path | None, Overrides, str | None]]
    if test:
        tests = [StoredExamples(each, settings or (), task) for each in test]
    elif hypothesis:
        tests = [(None, settings or (), task)]
    elif model is None:
        raise ConfigError("there is nothing to evaluate: give a model folder, or --test FILE --hypothesis FILE")
    else:
        reject_options({"KEY=VALUE": settings}, "with --test FILE")
        tests = stored_examples(model, task)
    if hypothesis and len(tests) > 1:
        raise ConfigError("--hypothesis has the predictions for one test set: give --test once")
    if confusion is not None and len(tests) > 1:
        raise ConfigError("--confusion draws the matrix of one test set: give --test once, or --task")
    check_new_files({"--confusion": confusion}, *(path for path, _, _ in tests), *(hypothesis or []))
    arguments: dict[str, Any] = {"prm": prm, "vectors": vectors, "device": device, "threads": threads}
    arguments |= {name: value for name, value in (("engine", engine), ("precision", precision)) if value is not None}
    if hypothesis:
        used = {"MODEL": model, "--compare": compare, "--device": device, "--threads": threads}
        used |= {"--vectors": vectors or None, "--engine": engine, "--precision": precision}
        reject_options(used, "without --hypothesis")
        arguments["hypothesis"] = hypothesis
    models = None if model is None else [model, *(compare or [])]
    results = [(path, evaluate_labels(models, path, how, task=name, **arguments)) for path, how, name in tests]
    if confusion is not None:
        matrix = results[0][1].reports[0].confusion
        if matrix is None:
            raise ConfigError(f"{results[0][1].models[0]} has no classes of texts or words: leave out --confusion")
        from dragoman.figures.confusion import label_confusion

        label_confusion(matrix).write(confusion)
    print_tests(results, as_json)
