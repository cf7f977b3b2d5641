"""`dragoman translate`: translate text line by line."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from dragoman.base.files import check_new_files
from dragoman.cli.arguments import check_settings
from dragoman.cli.command import command
from dragoman.cli.option_groups import AlignmentOptions, DecodingOptions, EngineOptions, RequestOptions
from dragoman.cli.options import Constraints, Divide, Ensemble, Model, OnError, Quiet, SearchSettings, System


class StandardOutput:
    """An output that writes translations to stdout immediately and cannot be resumed.

    lines: number of completed input lines; counts: warning counts of an earlier process, always empty.
    """

    def __init__(self) -> None:
        self.lines = 0
        self.counts: Mapping[str, int] = {}

    @property
    def is_visible(self) -> bool:
        """Return whether stdout is a terminal."""
        return sys.stdout.isatty()

    def remaining_lines(self, name: str, lines: Iterable[str], path: Path | None) -> Iterator[str]:
        """Yield all lines of an input."""
        return iter(lines)

    def write(self, lines: int, texts: Iterable[bytes], counts: Mapping[str, int]) -> None:
        """Write the output of the next lines."""
        for text in texts:
            sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
        self.lines += lines


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """Options for input and output files."""

    source: Annotated[
        Path | None,
        typer.Option("--input", "-i", help="Text to translate: plain, .gz, .bz2, .xz or .zst (default: stdin)."),
    ] = None
    target: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Output file: plain, .gz, .bz2, .xz or .zst (default: stdout). It is created only when complete.",
        ),
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted command with the same arguments.")] = (
        False
    )

    def check_new(self, **others: Path | None) -> None:
        """Raise ConfigError if an output file exists, unless the command resumes. others: more outputs, by option."""
        if not self.resume:
            check_new_files(
                {"--output": self.target, **{f"--{name}": path for name, path in others.items()}}, self.source
            )


@dataclass(frozen=True, kw_only=True)
class LineOptions:
    """Options for line-by-line translation."""

    nbest: Annotated[
        int, typer.Option("--nbest", min=1, help="Number of hypotheses per line, written as index ||| text ||| score.")
    ] = 1
    prefix: Annotated[
        Path | None,
        typer.Option(
            "--prefix",
            help="File with the start of each translation, one line per input line; a blank line for no prefix. The "
            "command fails if the number of lines differs. It then writes no output file, but may already have written "
            "lines to stdout.",
        ),
    ] = None
    constraints: Constraints = None
    scores: Annotated[
        bool, typer.Option("--scores", help="Write the log-probability (nats) and a tab before each line.")
    ] = False
    token_scores: Annotated[
        bool,
        typer.Option("--token-scores", help="Write the tokens and their log-probabilities (nats) after each line."),
    ] = False
    tree: Annotated[
        Path | None,
        typer.Option(
            "--tree",
            help="Write search trees, with scores and outcomes, as JSON Lines: plain, .gz, .bz2, .xz or .zst.",
        ),
    ] = None
    alignments: Annotated[
        Path | None,
        typer.Option(
            "--alignments",
            help="File for the word alignments between each line and its translation, such as 0-0 1-2, derived from "
            "attention.",
        ),
    ] = None
    divide: Divide = True
    rerank: Annotated[
        Path | None,
        typer.Option(
            "--rerank",
            help="File with the weights from `dragoman tune`. Write the hypothesis that they rank first; the number of "
            "hypotheses is the same as in tuning.",
        ),
    ] = None
    mbr: Annotated[
        str | None,
        typer.Option(
            "--mbr",
            metavar="chrf|bleu",
            help="Minimum Bayes risk: write the hypothesis most similar to all others, among --nbest hypotheses "
            "weighted by probability or, with --sample, among --nbest samples.",
        ),
    ] = None


@command(
    "dragoman translate runs/en-de --input test.en --output test.de",
    "echo 'A dog runs.' | dragoman translate runs/en-de",
    usual="--input --output --resume --to --beam --nbest --glossary --keep --guard --threads --quiet",
    files="--input",
    interrupted="interrupted",
)
def translate(
    model: Model,
    search: SearchSettings = None,
    *,
    files: FileOptions,
    system: System = None,
    ensemble: Ensemble = None,
    request: RequestOptions,
    lines: LineOptions,
    alignment: AlignmentOptions,
    on_error: OnError = "stop",
    decoding: DecodingOptions,
    engine_options: EngineOptions,
    quiet: Quiet = False,
) -> None:
    """Translate text line by line.

    The output has one line per input line, and blank lines stay blank. `dragoman translate-document` translates whole
    documents, and `dragoman translate-shards` many files on a cluster.
    """
    from dragoman.data.corpora.inputs import check_text_file
    from dragoman.inference.translation.files.translate_file import translate_file

    check_settings(search or [], "search.minimum_length=3", "--input FILE")
    settings, sampling = decoding.resolve(request, search, lines.nbest)
    check_text_file(files.source)
    files.check_new(tree=lines.tree, alignments=lines.alignments)
    translate_file(
        [model, *ensemble] if ensemble else model,
        files.source,
        StandardOutput() if files.target is None else files.target,
        system=system,
        resume=files.resume,
        sampling=sampling,
        attention=alignment.attention,
        on_error=on_error,
        **asdict(lines),
        **asdict(engine_options),
        **settings,
    )
