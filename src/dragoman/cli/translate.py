"""`dragoman translate`: lines of the source language in, lines of the target language out."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import (
    BatchSize,
    Beam,
    CoveragePenalty,
    Device,
    LengthPenalty,
    Model,
    Seed,
    Tags,
    Temperature,
    Threads,
    To,
    TopK,
    TopP,
    Unknown,
    drawing,
    refuse,
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
        typer.Option("--prefix", help="What each translation has to start with, a line a line; blank: free."),
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
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Translate a line at a time: N lines in, N lines out, blank lines stay blank."""
    use_threads(threads)
    from dragoman.base.errors import DataError, in_files
    from dragoman.cli.lines import one_line, output, read_lines, windows
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
        "--prefix": prefix,
    }
    refuse(of_search if sample else of_sampling, "without --sample" if sample else "with --sample")
    prefixes = _prefixes(prefix, source)
    drawn = drawing(temperature, top_k, top_p, seed, nbest) if sample else None
    translator = Translator.load(model, device)
    before = translator.source_tags.ids(to, split_tags(tags))
    config = drawn or translator.search_config(beam, nbest, length_penalty, coverage_penalty, unknown)
    with output(target) as out, in_files(source, prefix):
        first = 1
        for window in windows(read_lines(source), WINDOW_BATCHES * batch_size, source):
            given = None if prefixes is None else prefixes[first - 1 : first - 1 + len(window)]
            if given is not None and len(given) < len(window):
                raise _unequal(source, f"at least {first - 1 + len(window)}", prefix, len(prefixes or []))
            translations = translator.stream_nbest(window, config, batch_size, None, first, given, before)
            for index, hypotheses in enumerate(translations, start=first - 1):
                if nbest > 1:
                    lines = [f"{index} ||| {one_line(best.text)} ||| {best.score:.6f}" for best in hypotheses]
                elif scores:
                    lines = [f"{hypotheses[0].log_probability:.6f}\t{one_line(hypotheses[0].text)}"]
                else:
                    lines = [one_line(hypotheses[0].text)]
                out.write("".join(line + "\n" for line in lines).encode())
            out.flush()
            first += len(window)
        if prefixes is not None and len(prefixes) >= first:
            raise _unequal(source, str(first - 1), prefix, len(prefixes))


def _prefixes(path: Path | None, source: Path | None) -> list[str] | None:
    """The lines of `path`. A file to translate is counted before the first line of output is written."""
    from dragoman.cli.lines import read_lines

    if path is None:
        return None
    prefixes = list(read_lines(path))
    if source is not None and (count := sum(1 for _ in read_lines(source))) != len(prefixes):
        raise _unequal(source, str(count), path, len(prefixes))
    return prefixes


def _unequal(source: Path | None, lines: str, path: Path | None, prefixes: int) -> Exception:
    from dragoman.base.errors import DataError

    return DataError(
        f"{source or 'standard input'} has {lines} line(s) and {path} has {prefixes}: line n of --prefix "
        "is what translation n has to start with, blank where it is free"
    )
