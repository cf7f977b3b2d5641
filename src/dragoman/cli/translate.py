"""`dragoman translate`: lines of the source language in, lines of the target language out."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    from dragoman.cli.progress import LineProgress


def translate(
    model: Model,
    source: Annotated[
        Path | None, typer.Option("--input", "-i", help="Text to translate, .gz .xz .zst too (default: stdin).")
    ] = None,
    target: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Where to write, .gz .xz .zst too (default: stdout); complete or not at all."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the --output of the same command, which was killed or stopped.")
    ] = False,
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
    from dragoman.base.errors import ConfigError, DataError, in_files
    from dragoman.checkpoint.fingerprint import fingerprint
    from dragoman.cli.line_translation import LineTranslation
    from dragoman.cli.lines import StandardOutput
    from dragoman.cli.translated_file import translated_file
    from dragoman.translator import Translator

    if source is not None and (source.is_dir() or not source.exists()):
        raise DataError(f"there is no file {source}: check --input")
    if source is not None and target is not None and source.resolve() == target.resolve():
        raise DataError(f"--output {target} is the file to translate, and would be lost: choose another name")
    if resume and target is None:
        raise ConfigError("--resume goes on with a file: name it with --output")
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
    work = LineTranslation(translator, request, source, prefix, batch_size, nbest, scores)
    if target is None:
        with in_files(source, prefix), _progress(source, target, 0) as progress:
            work.write(StandardOutput(), progress)
        return
    settings = {**work.settings(), "model": fingerprint(model), "precision": precision}
    with (
        translated_file(target, work.inputs, settings, resume) as file,
        in_files(source, prefix),
        _progress(source, target, file.lines) as progress,
    ):
        work.write(file, progress)


def _progress(source: Path | None, target: Path | None, done: int) -> "LineProgress":
    """Of a work on files; of one that somebody is watching at a terminal nothing more is told."""
    from dragoman.cli.progress import LineProgress
    from dragoman.data.corpora.lines import count_lines

    def count() -> int | None:
        return count_lines(source) if source is not None and source.is_file() else None

    watched = (target is None and sys.stdout.isatty()) or (source is None and sys.stdin.isatty())
    return LineProgress(count, done, shown=not watched and (source is not None or target is not None))
