"""`dragoman translate`: lines of the source language in, lines of the target language out."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import BatchSize, Beam, Device, LengthPenalty, Model, Threads, use_threads


def translate(
    model: Model,
    source: Annotated[
        Path | None, typer.Option("--input", "-i", help="Text to translate, .gz .xz .zst too (default: stdin).")
    ] = None,
    target: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write (default: stdout); complete or not at all.")
    ] = None,
    beam: Beam = None,
    nbest: Annotated[
        int, typer.Option("--nbest", min=1, help="Write that many hypotheses a line: index ||| text ||| score.")
    ] = 1,
    length_penalty: LengthPenalty = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Write the log-probability (nats) and a tab before each line.")
    ] = False,
    batch_size: BatchSize = 64,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Translate a line at a time: N lines in, N lines out, blank lines stay blank."""
    use_threads(threads)
    from dragoman.base.errors import DataError
    from dragoman.cli.lines import one_line, output, read_lines, windows
    from dragoman.translator import WINDOW_BATCHES, Translator

    if source is not None and not source.is_file():
        raise DataError(f"there is no file {source}: check --input")
    translator = Translator.load(model, device)
    config = translator.search_config(beam, nbest, length_penalty)
    with output(target) as out:
        first = 1
        for window in windows(read_lines(source), WINDOW_BATCHES * batch_size, source):
            for index, hypotheses in enumerate(
                translator.stream_nbest(window, config, batch_size, first=first), start=first - 1
            ):
                if nbest > 1:
                    lines = [f"{index} ||| {one_line(best.text)} ||| {best.score:.6f}" for best in hypotheses]
                elif scores:
                    lines = [f"{hypotheses[0].log_probability:.6f}\t{one_line(hypotheses[0].text)}"]
                else:
                    lines = [one_line(hypotheses[0].text)]
                out.write("".join(line + "\n" for line in lines).encode())
            out.flush()
            first += len(window)
