"""`dragoman client`: translate lines, or predict their labels, with a server."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.command import command
from dragoman.cli.option_groups import split_tags
from dragoman.cli.options import Beam, Quiet

KEY = "DRAGOMAN_KEY"


@command(
    "dragoman client http://127.0.0.1:5000 --target de --input test.en",
    files="--input",
)
def client(
    url: Annotated[str, typer.Argument(help="The server's address, such as http://127.0.0.1:5000.")],
    *,
    target: Annotated[str | None, typer.Option("--target", "-t", help="Code of the target language.")] = None,
    source: Annotated[str, typer.Option("--source", "-s", help="Code of the source language.")] = "auto",
    input: Annotated[
        Path | None, typer.Option("--input", "-i", help="Text, one sentence per line (default: stdin).")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File for the translations (default: stdout).")
    ] = None,
    beam: Beam = None,
    keep: Annotated[
        str | None, typer.Option("--keep", metavar="KIND,…", help="Kinds of text that are kept unchanged, or all.")
    ] = None,
    guard: Annotated[bool, typer.Option("--guard", help="Search again if a translation is faulty.")] = False,
    predict: Annotated[
        bool, typer.Option("--predict", help="Predict the labels of the lines instead, as one JSON object per line.")
    ] = False,
    model: Annotated[
        str | None, typer.Option("--model", help="With --predict: name of the model, if the server has several.")
    ] = None,
    task: Annotated[
        str | None, typer.Option("--task", help="With --predict: name of the task, if the model has several.")
    ] = None,
    parallel: Annotated[int, typer.Option("--parallel", min=1, max=64, help="Number of concurrent requests.")] = 4,
    quiet: Quiet = False,
) -> None:
    """Translate lines, or predict their labels, with a server.

    The environment variable DRAGOMAN_KEY can contain an API key.
    """
    import json
    from contextlib import nullcontext

    from dragoman.addons.serving.client import Client, predict_lines, translate_lines
    from dragoman.base.errors import ConfigError, reject_options
    from dragoman.base.files import atomic_file, check_new_files
    from dragoman.base.log import quietly
    from dragoman.base.progress import Progress
    from dragoman.data.corpora.inputs import read_lines

    settings: dict[str, Any] = {"beam": beam, "keep": split_tags(keep) or None, "guard": guard or None}
    if predict:
        given = {"--target": target, "--beam": beam, "--keep": keep, "--guard": guard or None}
        reject_options({**given, "--source": None if source == "auto" else source}, "without --predict")
    else:
        reject_options({"--model": model, "--task": task}, "with --predict")
    check_new_files({"--output": output}, input)
    output_file = nullcontext(None) if output is None else atomic_file(output)
    with quietly(quiet), Client(url, os.environ.get(KEY)) as server, output_file as path:
        if predict:
            predictions = predict_lines(read_lines(input), server, model, parallel=parallel, task=task)
            results: Iterator[str] = (json.dumps(each, ensure_ascii=False) for each in predictions)
        elif target is None:
            raise ConfigError("the target language is missing: use --target, or --predict to predict labels")
        else:
            results = translate_lines(read_lines(input), server, target, source, parallel=parallel, **settings)
        stream = nullcontext(sys.stdout.buffer) if path is None else path.open("wb")
        with stream as file, Progress("Predicting" if predict else "Translating", "lines") as progress:
            for text in results:
                file.write(text.encode() + b"\n")
                file.flush()
                progress.update(progress.done + 1, progress.status)
