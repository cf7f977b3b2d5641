"""`dragoman client`: translate lines with a translation server."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.options import Beam, Quiet, split_tags

KEY = "DRAGOMAN_KEY"


def client(
    url: Annotated[str, typer.Argument(help="The server's address, such as http://127.0.0.1:5000.")],
    target: Annotated[str, typer.Option("--target", "-t", help="Code of the target language.")],
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
    parallel: Annotated[int, typer.Option("--parallel", min=1, max=64, help="Number of concurrent requests.")] = 4,
    quiet: Quiet = False,
) -> None:
    """Translate lines with a server. The environment variable DRAGOMAN_KEY can contain an API key."""
    from contextlib import nullcontext

    from dragoman.base.files import atomic_file
    from dragoman.base.log import quietly
    from dragoman.base.progress import Progress
    from dragoman.client import Client, translate_lines
    from dragoman.translation.files.lines import read_lines

    settings: dict[str, Any] = {"beam": beam, "keep": split_tags(keep) or None, "guard": guard or None}
    output_file = nullcontext(None) if output is None else atomic_file(output)
    with quietly(quiet), Client(url, os.environ.get(KEY)) as server, output_file as path:
        translations = translate_lines(read_lines(input), server, target, source, parallel=parallel, **settings)
        stream = nullcontext(sys.stdout.buffer) if path is None else path.open("wb")
        with stream as file, Progress("Translating", "lines") as progress:
            for text in translations:
                file.write(text.encode() + b"\n")
                file.flush()
                progress.update(progress.done + 1, progress.status)
