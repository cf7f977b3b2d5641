"""`dragoman translate`: translates lines, whole documents, or many files on a cluster."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.base.errors import reject_options
from dragoman.cli.cluster import (
    ActorsOption,
    ClusterOption,
    SourceField,
    TargetField,
    check_patterns,
    translate_on_cluster,
)
from dragoman.cli.document import DocumentOption, FormatOption, translate_document
from dragoman.cli.groups import grouped
from dragoman.cli.options import (
    Constraints,
    EngineOptions,
    Ensemble,
    Model,
    Quiet,
    RequestOptions,
    SamplingOptions,
    SearchSettings,
    check_settings,
    with_fusion,
)

if TYPE_CHECKING:
    from dragoman.translation.alignment import AttentionChoice
    from dragoman.translation.request import RequestSettings, Sampling


class StandardOutput:
    """Writes lines to stdout immediately.

    lines: number of completed input lines; counts: warnings of an earlier process, always empty.
    """

    def __init__(self) -> None:
        self.lines = 0
        self.counts: Mapping[str, int] = {}

    @property
    def watched(self) -> bool:
        """Return whether stdout is a terminal."""
        return sys.stdout.isatty()

    def follow(self, name: str, lines: Iterable[str], path: Path | None) -> Iterator[str]:
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
    """Input and output files."""

    inputs: Annotated[
        list[Path] | None,
        typer.Option(
            "--input",
            "-i",
            help="Text to translate: plain, .gz, .xz or .zst (default: stdin). With --cluster: files, folders or "
            "patterns; repeatable.",
        ),
    ] = None
    target: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Output file: plain, .gz, .xz or .zst (default: stdout); created only when complete.",
        ),
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume an interrupted command that has the same arguments.")
    ] = False

    @property
    def source(self) -> Path | None:
        """The only input; None for the standard input. Raises ConfigError if there are several."""
        reject_options({"more than one --input": (self.inputs or [])[1:]}, "with --cluster")
        return self.inputs[0] if self.inputs else None


@dataclass(frozen=True, kw_only=True)
class LineOptions:
    """Input and output of line-by-line translation."""

    nbest: Annotated[
        int, typer.Option("--nbest", min=1, help="Hypotheses to write per line, as index ||| text ||| score.")
    ] = 1
    prefix: Annotated[
        Path | None,
        typer.Option(
            "--prefix",
            help="File with the start of each translation, one line per input line; blank lines for none. If the "
            "numbers of lines differ, earlier lines may already be on stdout; an output file is not written.",
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
            help="Write search trees, with scores and outcomes, as JSON Lines: plain, .gz, .xz or .zst.",
        ),
    ] = None
    alignments: Annotated[
        Path | None,
        typer.Option(
            "--alignments",
            help="Write word alignments between each line and its translation, such as 0-0 1-2, from attention.",
        ),
    ] = None
    alignment_layer: Annotated[
        int | None,
        typer.Option(
            "--alignment-layer", min=1, help="Decoder layer to read alignments from (default: the penultimate one)."
        ),
    ] = None
    alignment_head: Annotated[
        int | None, typer.Option("--alignment-head", min=1, help="Head of that layer (default: the mean of all heads).")
    ] = None
    sample: Annotated[
        bool, typer.Option("--sample", help="Draw --nbest translations at random instead of searching.")
    ] = False
    rerank: Annotated[
        Path | None,
        typer.Option(
            "--rerank",
            help="Weights from `dragoman tune`; write the hypothesis that they rank first, among as many as they were "
            "tuned for.",
        ),
    ] = None
    mbr: Annotated[
        str | None,
        typer.Option(
            "--mbr",
            metavar="chrf|bleu",
            help="Minimum Bayes risk: write the hypothesis most similar to all others, among --nbest hypotheses "
            "weighted by probability or, with --sample, among the samples.",
        ),
    ] = None

    @property
    def attention(self) -> "AttentionChoice | None":
        """The attention to read alignments from; None for the default."""
        from dragoman.translation.alignment import AttentionChoice

        chosen = (self.alignment_layer, self.alignment_head)
        return None if chosen == (None, None) else AttentionChoice(*chosen)

    def given(self) -> dict[str, object]:
        """Return the options that are not available for documents and clusters, by name."""
        return {
            "--nbest": None if self.nbest == 1 else self.nbest,
            "--prefix": self.prefix,
            "--constraints": self.constraints,
            "--scores": self.scores or None,
            "--token-scores": self.token_scores or None,
            "--tree": self.tree,
            "--alignments": self.alignments,
            "--rerank": self.rerank,
            "--mbr": self.mbr,
        }


@dataclass(frozen=True, kw_only=True)
class ModeOptions:
    """Options for translating many files on a cluster, or a whole document, instead of the lines of a file."""

    cluster: ClusterOption = None
    actors: ActorsOption = None
    source_field: SourceField = None
    target_field: TargetField = None
    document: DocumentOption = False
    format: FormatOption = None

    def of_cluster(self) -> dict[str, object]:
        """Return the options that need --cluster, by name."""
        return {"--actors": self.actors, "--source-field": self.source_field, "--target-field": self.target_field}


@grouped
def translate(
    model: Model,
    search: SearchSettings = None,
    *,
    files: FileOptions,
    ensemble: Ensemble = None,
    request: RequestOptions,
    lines: LineOptions,
    on_error: Annotated[
        str,
        typer.Option(
            "--on-error",
            metavar="stop|replace|blank",
            help="How to treat lines that are not UTF-8 or are longer than the model can read: stop with an error; "
            "replace invalid bytes with U+FFFD and translate long lines in parts; or leave the translation blank.",
        ),
    ] = "stop",
    mode: ModeOptions,
    drawing: SamplingOptions,
    computing: EngineOptions,
    quiet: Quiet = False,
) -> None:
    """Translate text line by line, or a whole --document. There is one output line per input line; blank lines stay
    blank.
    """
    if mode.cluster is not None:
        check_patterns(search or [])
    check_settings(search or [], example="search.minimum_length=3")
    if lines.sample:
        reject_options({**request.of_search(), "--constraints": lines.constraints}, "without --sample")
    else:
        reject_options(drawing.given(), "with --sample")
    command = _Command(
        models=[model, *ensemble] if ensemble else model,
        files=files,
        lines=lines,
        mode=mode,
        computing=computing,
        on_error=on_error,
        sampling=drawing.sampling(lines.nbest, search or ()) if lines.sample else None,
        settings=request.settings(() if lines.sample else with_fusion(search, request.language_model, request.fusion)),
    )
    if mode.cluster is not None:
        command.translate_on_cluster(mode.cluster)
    elif mode.document:
        command.translate_document()
    else:
        command.translate_lines()


@dataclass(frozen=True, kw_only=True)
class _Command:
    """The parsed options of a command. Each method rejects the options of the other modes."""

    models: Path | Sequence[Path]
    files: FileOptions
    lines: LineOptions
    mode: ModeOptions
    computing: EngineOptions
    on_error: str
    sampling: "Sampling | None"
    settings: "RequestSettings"

    def translate_on_cluster(self, cluster: str) -> None:
        """Translate many files with Ray."""
        device = self.computing.device
        others = {
            "--document": self.mode.document or None,
            "--format": self.mode.format,
            "--alignment-layer, --alignment-head": self.lines.attention,
            f"--device {device}": None if device == "cpu" else device,
        }
        reject_options({"--resume": self.files.resume or None, **self.lines.given(), **others}, "without --cluster")
        translate_on_cluster(
            self.models,
            self.files.inputs or [],
            self.files.target,
            cluster,
            actors=self.mode.actors,
            threads=self.computing.threads,
            source_field=self.mode.source_field,
            target_field=self.mode.target_field,
            sampling=self.sampling,
            batch_size=self.computing.batch_size,
            engine=self.computing.engine,
            precision=self.computing.precision,
            on_error=self.on_error,
            **self.settings,
        )

    def translate_document(self) -> None:
        """Translate a whole document."""
        reject_options(self.mode.of_cluster(), "with --cluster")
        source = self.files.source
        others = {"--resume": self.files.resume or None, **self.lines.given(), "--sample": self.lines.sample or None}
        reject_options(others, "without --document")
        how = {**asdict(self.computing), "attention": self.lines.attention, **self.settings}
        translate_document(self.models, source, self.files.target, self.mode.format, self.on_error, **how)

    def translate_lines(self) -> None:
        """Translate the lines of a file or of the standard input."""
        from dragoman.translation.files.translate_file import translate_file

        reject_options(self.mode.of_cluster(), "with --cluster")
        source = self.files.source
        reject_options({"--format": self.mode.format}, "with --document")
        translate_file(
            self.models,
            source,
            StandardOutput() if self.files.target is None else self.files.target,
            resume=self.files.resume,
            prefix=self.lines.prefix,
            constraints=self.lines.constraints,
            nbest=self.lines.nbest,
            scores=self.lines.scores,
            token_scores=self.lines.token_scores,
            tree=self.lines.tree,
            sampling=self.sampling,
            rerank=self.lines.rerank,
            mbr=self.lines.mbr,
            alignments=self.lines.alignments,
            attention=self.lines.attention,
            on_error=self.on_error,
            batch_size=self.computing.batch_size,
            engine=self.computing.engine,
            precision=self.computing.precision,
            device=self.computing.device,
            threads=self.computing.threads,
            **self.settings,
        )
