"""`dragoman translate`: lines of the source language in, lines of the target language out."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import (
    BatchSize,
    Beam,
    CoveragePenalty,
    Device,
    Engine,
    LengthPenalty,
    Model,
    Precision,
    Seed,
    Tags,
    Temperature,
    Threads,
    To,
    TopK,
    TopP,
    Unknown,
    refuse,
    sampling,
    split_tags,
    use_threads,
)


def translate(
    model: Model,
    source: Annotated[
        Path | None, typer.Option("--input", "-i", help="Text to translate, .gz .xz .zst too (default: stdin).")
    ] = None,
    target: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write (default: stdout); complete or not at all.")
    ] = None,
    to: To = None,
    tags: Tags = None,
    beam: Beam = None,
    nbest: Annotated[
        int, typer.Option("--nbest", min=1, help="Write that many hypotheses a line: index ||| text ||| score.")
    ] = 1,
    length_penalty: LengthPenalty = None,
    coverage_penalty: CoveragePenalty = None,
    unknown: Unknown = None,
    prefix: Annotated[
        Path | None,
        typer.Option(
            "--prefix",
            help="What each translation has to start with, a line a line; blank: free. Where the numbers of lines turn "
            "out to differ, earlier lines are on stdout already; a file is not written.",
        ),
    ] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Write the log-probability (nats) and a tab before each line.")
    ] = False,
    sample: Annotated[
        bool, typer.Option("--sample", help="Draw translations at random instead of searching the best; --nbest many.")
    ] = False,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    seed: Seed = None,
    batch_size: BatchSize = 64,
    engine: Engine = "auto",
    precision: Precision = None,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Translate a line at a time: N lines in, N lines out, blank lines stay blank."""
    use_threads(threads)
    from dragoman.base.errors import DataError, in_files
    from dragoman.cli.lines import one_line, output
    from dragoman.translator import WINDOW_BATCHES, Translator

    if source is not None and (source.is_dir() or not source.exists()):
        raise DataError(f"there is no file {source}: check --input")
    if source is not None and target is not None and source.resolve() == target.resolve():
        raise DataError(f"--output {target} is the file to translate, and would be lost: choose another name")
    of_sampling = {"--temperature": temperature, "--top-k": top_k, "--top-p": top_p, "--seed": seed}
    of_search = {
        "--beam": beam,
        "--length-penalty": length_penalty,
        "--coverage-penalty": coverage_penalty,
        "--unknown": unknown,
    }
    refuse(of_search if sample else of_sampling, "without --sample" if sample else "with --sample")
    drawn = sampling(temperature, top_k, top_p, seed, nbest) if sample else None
    translator = Translator.load(model, device, engine, precision, threads)
    request = translator.request(
        beam=beam,
        nbest=1 if sample else nbest,
        length_penalty=length_penalty,
        coverage_penalty=coverage_penalty,
        unknown=unknown,
        sampling=drawn,
        to=to,
        tags=split_tags(tags),
    )
    with output(target) as out, in_files(source, prefix):
        first = 1
        for window, prefixes in _windows(source, prefix, WINDOW_BATCHES * batch_size):
            requests = request if prefixes is None else [replace(request, prefix=each) for each in prefixes]
            found = translator.translate_window(window, requests, batch_size, first)
            for index, hypotheses in enumerate(found, start=first - 1):
                if nbest > 1:
                    lines = [f"{index} ||| {one_line(best.text)} ||| {best.score:.6f}" for best in hypotheses]
                elif scores:
                    lines = [f"{hypotheses[0].log_probability:.6f}\t{one_line(hypotheses[0].text)}"]
                else:
                    lines = [one_line(hypotheses[0].text)]
                out.write("".join(line + "\n" for line in lines).encode())
            out.flush()
            first += len(window)


def _windows(source: Path | None, prefix: Path | None, size: int) -> Iterator[tuple[list[str], list[str] | None]]:
    """Runs of lines with their prefixes, both read once. Raises DataError with both counts where these are unequal.

    Of the standard input it counts what has come: its end may never come.
    """
    from dragoman.cli.lines import read_lines, windows

    lines, count = read_lines(source), 0
    prefixes = None if prefix is None else read_lines(prefix)
    for window in windows(lines, size, source):
        count += len(window)
        given = None if prefixes is None else list(islice(prefixes, len(window)))
        if given is not None and len(given) < len(window):
            known = f"at least {count}" if source is None else str(count + sum(1 for _ in lines))
            raise _unequal(source, known, prefix, count - len(window) + len(given))
        if source is not None and len(window) < size:  # the last one: told before it is translated
            _check_end(prefixes, source, count, prefix)
        yield window, given
    _check_end(prefixes, source, count, prefix)


def _check_end(prefixes: Iterator[str] | None, source: Path | None, count: int, prefix: Path | None) -> None:
    """Raises DataError where more of the prefixes are left after the last of `count` lines."""
    if prefixes is not None and (more := sum(1 for _ in prefixes)):
        raise _unequal(source, str(count), prefix, count + more)


def _unequal(source: Path | None, lines: str, path: Path | None, prefixes: int) -> Exception:
    from dragoman.base.errors import DataError

    return DataError(
        f"{source or 'standard input'} has {lines} line(s) and {path} has {prefixes}: line n of --prefix "
        "is what translation n has to start with, blank where it is free"
    )
