"""`dragoman translate`: translate lines, whole documents, or many files on a cluster."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.addons.bulk.command import (
    ActorsOption,
    ClusterOption,
    SourceField,
    TargetField,
    check_patterns,
    translate_on_cluster,
)
from dragoman.addons.documents.command import DocumentOption, EncodingOption, FormatOption, translate_document
from dragoman.base.errors import reject_options
from dragoman.base.files import check_new_files
from dragoman.cli.arguments import check_settings
from dragoman.cli.groups import grouped
from dragoman.cli.options import (
    Constraints,
    Divide,
    EngineOptions,
    Ensemble,
    Model,
    Quiet,
    RequestOptions,
    SamplingOptions,
    SearchSettings,
    with_fusion,
)

if TYPE_CHECKING:
    from dragoman.decode.decoding import Sampling
    from dragoman.inference.translation.request import RequestSettings
    from dragoman.models.attention_weights import AttentionChoice


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

    inputs: Annotated[
        list[Path] | None,
        typer.Option(
            "--input",
            "-i",
            help="Text to translate: plain, .gz, .bz2, .xz or .zst (default: stdin). With --cluster: files, folders or "
            "patterns; repeatable.",
        ),
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

    @property
    def source(self) -> Path | None:
        """The input file; None for stdin. Raises ConfigError if there are several input files."""
        reject_options({"more than one --input": (self.inputs or [])[1:]}, "with --cluster")
        return self.inputs[0] if self.inputs else None

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
    alignment_layer: Annotated[
        int | None,
        typer.Option(
            "--alignment-layer", min=1, help="Decoder layer for the alignments (default: the penultimate layer)."
        ),
    ] = None
    alignment_head: Annotated[
        int | None,
        typer.Option(
            "--alignment-head", min=1, help="Attention head for the alignments (default: the mean of all heads)."
        ),
    ] = None
    divide: Divide = True
    sample: Annotated[bool, typer.Option("--sample", help="Sample --nbest translations instead of searching.")] = False
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

    @property
    def attention(self) -> "AttentionChoice | None":
        """The layer and head for the alignments; None for the default."""
        from dragoman.models.attention_weights import AttentionChoice

        chosen = (self.alignment_layer, self.alignment_head)
        return None if chosen == (None, None) else AttentionChoice(*chosen)

    def by_name(self) -> dict[str, object]:
        """Return the options that are only valid for lines, not for documents and clusters, by option name."""
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
    """Options for translating many files on a cluster or a whole document instead of lines."""

    cluster: ClusterOption = None
    actors: ActorsOption = None
    source_field: SourceField = None
    target_field: TargetField = None
    document: DocumentOption = False
    format: FormatOption = None
    encoding: EncodingOption = None

    def cluster_options(self) -> dict[str, object]:
        """Return the options that need --cluster, by option name."""
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
            help="Treatment of lines that are not UTF-8 or exceed the model's maximum length. stop: stop with an "
            "error; replace: replace invalid bytes with U+FFFD, and translate long lines in parts; blank: write a "
            "blank line.",
        ),
    ] = "stop",
    mode: ModeOptions,
    sampling_options: SamplingOptions,
    engine_options: EngineOptions,
    quiet: Quiet = False,
) -> None:
    """Translate text line by line, or a whole --document.

    Line by line, the output has one line per input line, and blank lines stay blank.
    """
    if mode.cluster is not None:
        check_patterns(search or [])
    check_settings(search or [], "search.minimum_length=3", "--input FILE")
    if lines.sample:
        reject_options({**request.search_options(), "--constraints": lines.constraints}, "without --sample")
    else:
        reject_options(sampling_options.by_name(), "with --sample")
    command = _Command(
        models=[model, *ensemble] if ensemble else model,
        files=files,
        lines=lines,
        mode=mode,
        engine_options=engine_options,
        on_error=on_error,
        sampling=sampling_options.sampling(lines.nbest, search or ()) if lines.sample else None,
        settings={
            **request.settings(() if lines.sample else with_fusion(search, request.language_model, request.fusion)),
            "divide": lines.divide,
        },
    )
    if mode.cluster is not None:
        command.translate_on_cluster(mode.cluster)
    elif mode.document:
        command.translate_document()
    else:
        command.translate_lines()


@dataclass(frozen=True, kw_only=True)
class _Command:
    """The parsed options of the command. Each method rejects options that are only valid in other modes."""

    models: Path | Sequence[Path]
    files: FileOptions
    lines: LineOptions
    mode: ModeOptions
    engine_options: EngineOptions
    on_error: str
    sampling: "Sampling | None"
    settings: "RequestSettings"

    def translate_on_cluster(self, cluster: str) -> None:
        """Translate many files with Ray."""
        device = self.engine_options.device
        rejected = {
            "--document": self.mode.document or None,
            "--format": self.mode.format,
            "--encoding": self.mode.encoding,
            "--alignment-layer, --alignment-head": self.lines.attention,
            f"--device {device}": None if device == "cpu" else device,
        }
        reject_options({"--resume": self.files.resume or None, **self.lines.by_name(), **rejected}, "without --cluster")
        translate_on_cluster(
            self.models,
            self.files.inputs or [],
            self.files.target,
            cluster,
            actors=self.mode.actors,
            threads=self.engine_options.threads,
            source_field=self.mode.source_field,
            target_field=self.mode.target_field,
            sampling=self.sampling,
            batch_size=self.engine_options.batch_size,
            engine=self.engine_options.engine,
            precision=self.engine_options.precision,
            on_error=self.on_error,
            **self.settings,
        )

    def translate_document(self) -> None:
        """Translate a whole document."""
        reject_options(self.mode.cluster_options(), "with --cluster")
        source = self.files.source
        rejected = {
            "--resume": self.files.resume or None,
            **self.lines.by_name(),
            "--sample": self.lines.sample or None,
            "--no-divide": None if self.lines.divide else True,
        }
        reject_options(rejected, "without --document")
        self.files.check_new()
        options = {**asdict(self.engine_options), "attention": self.lines.attention, **self.settings}
        translate_document(
            self.models, source, self.files.target, self.mode.format, self.on_error, self.mode.encoding, **options
        )

    def translate_lines(self) -> None:
        """Translate the lines of a file or of stdin."""
        from dragoman.data.corpora.inputs import check_text_file
        from dragoman.inference.translation.files.translate_file import translate_file

        reject_options(self.mode.cluster_options(), "with --cluster")
        source = self.files.source
        reject_options({"--format": self.mode.format, "--encoding": self.mode.encoding}, "with --document")
        check_text_file(source)
        self.files.check_new(tree=self.lines.tree, alignments=self.lines.alignments)
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
            batch_size=self.engine_options.batch_size,
            engine=self.engine_options.engine,
            precision=self.engine_options.precision,
            device=self.engine_options.device,
            threads=self.engine_options.threads,
            **self.settings,
        )
