"""`translate_file`: translates a file of any size; a killed call can be resumed."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from dragoman.base.companion import atomic_companion
from dragoman.base.errors import in_files, reject_options
from dragoman.base.log import quietly
from dragoman.base.machine.device import use_threads
from dragoman.checkpoint.folder import fingerprint_of
from dragoman.translation.files.faulty_lines import on_error_of
from dragoman.translation.files.line_translation import AlignmentWriter, Destination, LineTranslation
from dragoman.translation.files.options import (
    EngineOptions,
    FileSettings,
    HypothesisOptions,
    LineFiles,
    check_names,
    check_paths,
    take,
)
from dragoman.translation.files.translated_file import translated_file
from dragoman.translation.tree import tree_file


@dataclass(frozen=True)
class TranslatedText:
    """path: the file, None if the lines went elsewhere. lines: number of translated lines, including those of earlier
    calls.
    """

    path: Path | None
    lines: int


def translate_file(
    model: str | Path | Sequence[str | Path],
    source: str | Path | None,
    target: str | Path | Destination,
    *,
    resume: bool = False,
    on_error: str = "stop",
    quiet: bool = False,
    **settings: Unpack[FileSettings],
) -> TranslatedText:
    """Translate a file line by line, as `dragoman translate` does: one line per input line.

    Memory does not grow with the file. model: a folder, or several for an ensemble. source: plain text, .gz, .xz or
    .zst; None: the standard input. target: compressed according to its suffix; the file is complete or does not exist.
    resume: resume an interrupted call with the same arguments. on_error: how to treat lines that are not UTF-8 or are
    longer than the model can read, as in `FaultyLines`. settings: beam, length_penalty, coverage_penalty, unknown,
    search, to, tags, glossary, keep, keep_patterns and guard, as in `Translator.request`; and the fields of
    `EngineOptions` (inference engine), `HypothesisOptions` (output) and `LineFiles` (further files), as documented
    there.

    Raises DataError for files that are missing, unreadable or of unequal length, ConfigError for invalid settings, and
    for unfinished work of this or another call in the folder next to the target; ModelError and ResourceError as
    `Translator`; Interrupted after Ctrl-C or SIGTERM, with completed lines kept.
    """
    request_settings: dict[str, Any] = {**settings}
    computing, hypotheses = take(EngineOptions, request_settings), take(HypothesisOptions, request_settings)
    files = take(LineFiles, request_settings)
    check_names(request_settings)
    use_threads(computing.threads)
    source, target = None if source is None else Path(source), Path(target) if isinstance(target, str) else target
    faults = on_error_of(on_error)
    check_paths(source, target, resume)
    files.check(source, target, resume)
    if hypotheses.sampling is not None:
        reject_options({"--constraints": files.constraints}, "without --sample")
    reranking = hypotheses.reranking()
    with quietly(quiet), ExitStack() as open_files:
        translator = computing.load(model, files.aligner)
        choice = hypotheses.choice(reranking, translator, computing)
        request = translator.request(
            nbest=hypotheses.searched(reranking), sampling=hypotheses.sampling, **request_settings
        ).with_details(hypotheses.token_scores, files.tree is not None)
        alignments = None
        if files.alignments is not None:
            alignments = AlignmentWriter(translator.aligner_of(request.tags, files.attention), computing.batch_size)
            alignments.check()
        translation = LineTranslation(
            translator,
            request,
            source,
            files.prefix,
            computing.batch_size,
            nbest=hypotheses.written(choice),
            scores=hypotheses.scores,
            token_scores=hypotheses.token_scores,
            trees=open_files.enter_context(tree_file(files.tree)),
            choice=choice,
            constraints=files.constraints,
            alignments=alignments,
            on_error=faults,
        )
        if not isinstance(target, Path):
            companion = None
            if files.alignments is not None:
                companion = open_files.enter_context(atomic_companion(files.alignments))
            with in_files(source, files.prefix), translation.progress(target) as progress:
                translation.write(target, progress, companion)
            return TranslatedText(None, target.lines)
        decisive = {**translation.settings(), "model": fingerprint_of(model), "precision": computing.precision}
        with (
            translated_file(target, translation.inputs, decisive, resume, files.alignments) as file,
            in_files(source, files.prefix),
            translation.progress(file) as progress,
        ):
            translation.write(file, progress, file.companion)
        return TranslatedText(target, file.lines)
