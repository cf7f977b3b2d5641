"""`dragoman compare`: compare systems that were trained with several seeds."""

from pathlib import Path
from typing import Annotated, cast

import typer

from dragoman.cli.arguments import check_settings, pairs_of
from dragoman.cli.command import command
from dragoman.cli.option_groups import SearchOptions
from dragoman.cli.options import BatchSize, Device, PairsFile, Quiet, TaskName, Threads
from dragoman.cli.results import print_results


@command(
    "dragoman compare runs/rnn runs/transformer",
    "dragoman compare runs/rnn runs/transformer --format latex --draw curves.svg",
    usual="--source --reference --pairs --test --task --metric --format --output --draw --to --beam --device --threads "
    "--quiet",
    files="--source and --reference, or --test",
)
def compare(
    models: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL...",
            help="Model folders, folders of runs with several seeds, or folders that contain models. Models whose "
            "settings differ only in the seed are one system. Also search settings, such as search.beam=4, or "
            "settings of --test, such as columns.text=review.",
            show_default=False,
        ),
    ],
    *,
    source: Annotated[
        Path | None,
        typer.Option("--source", help="Source sentences (default: the test set of the models, which is the same)."),
    ] = None,
    reference: Annotated[Path | None, typer.Option("--reference", help="Reference translations.")] = None,
    pairs: PairsFile = None,
    test: Annotated[
        Path | None,
        typer.Option(
            "--test",
            help="Labelled examples, for models that predict labels (default: those that training held out, which are "
            "the same).",
        ),
    ] = None,
    task: TaskName = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="NAME",
            help="Metric; repeatable (default: bleu and chrf, or the main ones of the labels).",
        ),
    ] = None,
    tokenizer: Annotated[
        str, typer.Option("--tokenizer", metavar="NAME", help="sacreBLEU's tokeniser for BLEU.")
    ] = "auto",
    table_format: Annotated[
        str,
        typer.Option(
            "--format",
            help="text, markdown, latex (booktabs), csv (one row per seed and metric) or json.",
        ),
    ] = "text",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File for the table (default: stdout).")] = None,
    draw: Annotated[
        Path | None,
        typer.Option(
            "--draw", help="Also draw the learning curves: a colour per system, a band over its seeds (SVG, PNG, CSV)."
        ),
    ] = None,
    options: SearchOptions,
    batch_size: BatchSize = 64,
    device: Device = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Compare systems that were trained with several seeds.

    The systems translate or predict labels. The table has mean and standard deviation of each system. Each system after
    the first is tested against it, over seeds and sentences. Two models of one system are never compared: they differ
    by luck alone.
    """
    from dragoman.base.errors import reject_options
    from dragoman.base.files import atomic_write, check_new_files
    from dragoman.evaluation.compare import compare
    from dragoman.evaluation.compare_labels import predicts_labels
    from dragoman.evaluation.system_table import TableFormat, check_table_format
    from dragoman.evaluation.systems import find_systems, system_figure

    folders = [each for each in models if "=" not in str(each) or each.exists()]
    settings = [str(each) for each in models if each not in folders]
    check_table_format(table_format)
    check_new_files({"--output": output, "--draw": draw}, source, test)
    if predicts_labels(find_systems(folders)[0].folders[0]):
        others = {"--source": source, "--reference": reference, "--pairs": pairs, **options.search_options()}
        reject_options(others, "with models that translate")
        check_settings(settings, "columns.text=review", "--test FILE")
        if test is None:
            reject_options({"KEY=VALUE": settings}, "with --test FILE")
        table = compare(
            folders, test=test, test_settings=settings, task=task, metric=metric, device=device, threads=threads
        )
    else:
        reject_options({"--test": test, "--task": task}, "with models that predict labels")
        check_settings(settings, "search.minimum_length=3", "MODEL...")
        corpus, settings = pairs_of(pairs, settings)
        table = compare(
            folders,
            source=source,
            reference=reference,
            pairs=corpus,
            metric=metric,
            tokenizer=tokenizer,
            batch_size=batch_size,
            device=device,
            threads=threads,
            **options.search_settings(settings),
        )
    text = table.format(cast("TableFormat", table_format))
    if output is not None:
        atomic_write(output, text + "\n")
    elif table_format == "text":
        print_results(table)
    else:
        print(text)
    if draw is not None:
        system_figure(folders).write(draw)
