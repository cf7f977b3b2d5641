"""`translate_file`: translates a file of any size. An interrupted call can be resumed."""

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
from dragoman.checkpoint.systems import system_folders
from dragoman.inference.translation.files.faulty_lines import on_error_of
from dragoman.inference.translation.files.line_translation import AlignmentWriter, Destination, LineTranslation
from dragoman.inference.translation.files.options import (
    EngineOptions,
    FileSettings,
    HypothesisOptions,
    LineFiles,
    check_names,
    check_paths,
    extract_options,
)
from dragoman.inference.translation.files.translated_file import translated_file
from dragoman.inference.translation.files.trees import tree_file


@dataclass(frozen=True)
class TranslatedText:
    """The result of `translate_file`.

    path: the output file, None if the target was a `Destination`. lines: number of translated lines, including lines of
    earlier calls.
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

    Memory use does not depend on the file size. model: a folder, or several for an ensemble. source: plain text, .gz,
    .bz2, .xz or .zst; None for the standard input. target: the output file, compressed according to its suffix, which
    exists only once it is complete; or a `Destination`. resume: resume an interrupted call with the same arguments.
    on_error: how to handle lines that are not UTF-8 or exceed the model's maximum length, as in `FaultyLines`.
    settings: beam, length_penalty, coverage_penalty, unknown, search, to, tags, glossary, keep, keep_patterns, guard
    and divide, as in `Translator.request`; and the fields of `EngineOptions` (inference engine), `HypothesisOptions`
    (output) and `LineFiles` (further files).

    Raises DataError for files that are missing, unreadable or of unequal length; ConfigError for invalid settings, and
    if the folder next to the target contains unfinished work; ModelError and ResourceError like `Translator`;
    Interrupted after Ctrl-C or SIGTERM, after which completed lines are kept.

    >>> from dragoman import translate_file
    >>> done = translate_file("runs/ende", "test.en", "test.out.de.gz", beam=1)
    >>> done.path.name, done.lines
    ('test.out.de.gz', 60)
    """
    request_settings: dict[str, Any] = {**settings}
    engine = extract_options(EngineOptions, request_settings)
    hypotheses = extract_options(HypothesisOptions, request_settings)
    files = extract_options(LineFiles, request_settings)
    check_names(request_settings)
    use_threads(engine.threads)
    source, target = None if source is None else Path(source), Path(target) if isinstance(target, str) else target
    checked_on_error = on_error_of(on_error)
    check_paths(source, target, resume)
    files.check(source, target, resume)
    if hypotheses.sampling is not None:
        reject_options({"--constraints": files.constraints}, "without --sample")
    reranking = hypotheses.reranking()
    with quietly(quiet), ExitStack() as open_files:
        translator = engine.load(model, files.aligner)
        choice = hypotheses.choice(reranking, translator, engine)
        request = translator.request(
            nbest=hypotheses.search_nbest(reranking), sampling=hypotheses.sampling, **request_settings
        ).with_details(hypotheses.token_scores, files.tree is not None)
        alignments = None
        if files.alignments is not None:
            alignments = AlignmentWriter(translator.aligner_of(request.tags, files.attention), engine.batch_size)
            alignments.check()
        translation = LineTranslation(
            translator,
            request,
            source,
            files.prefix,
            engine.batch_size,
            nbest=hypotheses.output_nbest(choice),
            scores=hypotheses.scores,
            token_scores=hypotheses.token_scores,
            trees=open_files.enter_context(tree_file(files.tree)),
            choice=choice,
            constraints=files.constraints,
            alignments=alignments,
            on_error=checked_on_error,
        )
        if not isinstance(target, Path):
            companion = None
            if files.alignments is not None:
                companion = open_files.enter_context(atomic_companion(files.alignments))
            with in_files(source, files.prefix), translation.progress(target) as progress:
                translation.write(target, progress, companion)
            return TranslatedText(None, target.lines)
        digest = fingerprint_of(system_folders(model, engine.system))
        recorded = {**translation.settings(), "model": digest, "precision": translator.engine.precision}
        with (
            translated_file(target, translation.inputs, recorded, resume, files.alignments) as file,
            in_files(source, files.prefix),
            translation.progress(file) as progress,
        ):
            translation.write(file, progress, file.companion)
        return TranslatedText(target, file.lines)
