"""`translate_file`: a file of any size through a model, to be gone on with after a kill."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from dragoman.base.companion import companion_alone
from dragoman.base.errors import ConfigError, DataError, in_files, refuse
from dragoman.base.log import quietly
from dragoman.base.machine.device import use_threads
from dragoman.checkpoint.folder import fingerprint_of
from dragoman.translation.alignment import Aligner, AttentionChoice
from dragoman.translation.files.choosing import check_choice
from dragoman.translation.files.faulty_lines import on_error_of
from dragoman.translation.files.line_translation import Destination, LineTranslation
from dragoman.translation.files.translated_file import translated_file
from dragoman.translation.files.word_alignments import WordAlignments
from dragoman.translation.request import RequestSettings, Sampling
from dragoman.translation.reranking.config import RerankingConfig
from dragoman.translation.reranking.reranker import Reranker
from dragoman.translation.translator import Translator
from dragoman.translation.tree import tree_file


@dataclass(frozen=True)
class TranslatedText:
    """path: the file; None where the lines went elsewhere. lines: of it, those of earlier calls too."""

    path: Path | None
    lines: int


def translate_file(
    model: str | Path | Sequence[str | Path],
    source: str | Path | None,
    target: str | Path | Destination,
    *,
    resume: bool = False,
    prefix: str | Path | None = None,
    constraints: str | Path | None = None,
    nbest: int = 1,
    scores: bool = False,
    token_scores: bool = False,
    tree: str | Path | None = None,
    sampling: Sampling | None = None,
    rerank: str | Path | RerankingConfig | None = None,
    mbr: str | None = None,
    batch_size: int = 64,
    engine: str = "auto",
    precision: str | None = None,
    device: str | None = None,
    threads: int | None = None,
    alignments: str | Path | None = None,
    attention: AttentionChoice | None = None,
    aligner: Aligner | None = None,
    on_error: str = "stop",
    quiet: bool = False,
    **settings: Unpack[RequestSettings],
) -> TranslatedText:
    """Translate a file line by line, as `dragoman translate` does: N lines in, N lines out.

    Memory does not grow with the file. model: a folder, or several that translate together.

    source: .gz, .xz and .zst too; None: the standard input. target: compressed as its name ends; it is complete or
    not there. resume: go on with what the same call left behind that was stopped. prefix: a file with what each
    translation starts with; constraints: one with the phrases that each has to hold, a tab between phrases and |
    between alternatives. nbest: write so many hypotheses a line, as `index ||| text ||| score`; scores: write
    the log-probability (nats) and a tab before each line; token_scores: write the tokens and their
    log-probabilities behind each. tree: a file for all that was expanded, JSON Lines (docs/searching-rules.md);
    complete or not there, and not to be gone on with. sampling: draw translations, `sampling.samples` a line,
    instead of searching. rerank: what `dragoman tune` wrote; of as many hypotheses as it says, or `nbest`, the one
    is written that it puts first. mbr: chrf or bleu; of the `nbest` hypotheses, or the samples, the one is written
    that is most like all others (`MinimumRisk`). alignments: a file to write which words of its line each line's best
    translation comes from, as `0-0 1-2`; attention: the attention of the decoder to read it from;
    aligner: what to align words with instead. on_error: what to do about lines of broken UTF-8
    and those longer than the model can read, as of `FaultyLines`. settings: beam, length_penalty, coverage_penalty,
    unknown, search, to, tags, glossary, keep, keep_patterns and guard, as `Translator.request` takes them. The others
    are as in `Translator.load`.

    Raises DataError for files that are missing, unreadable or unequally long, ConfigError for settings that make no
    sense, and where the folder beside the target holds unfinished or other work, ModelError and ResourceError as
    `Translator`, Interrupted after Ctrl-C or SIGTERM, with what is done kept.
    """
    use_threads(threads)
    source = None if source is None else Path(source)
    target, prefix = Path(target) if isinstance(target, str) else target, None if prefix is None else Path(prefix)
    tree, alignments = None if tree is None else Path(tree), None if alignments is None else Path(alignments)
    constraints = None if constraints is None else Path(constraints)
    on_error = on_error_of(on_error)
    _check(source, target, resume)
    _check_tree(tree, source, target, resume)
    _check_alignments(alignments, {"--input": source, "--output": target, "--tree": tree}, attention, aligner)
    if sampling is not None:
        refuse({"--constraints": constraints}, "without --sample")
    choice = check_choice(rerank, mbr, nbest, None if sampling is None else sampling.samples)
    with quietly(quiet), ExitStack() as open_files:
        translator = Translator.load(model, device, engine, precision, threads, aligner=aligner)
        if isinstance(choice, RerankingConfig):
            nbest = choice.nbest if nbest == 1 else nbest
            choice = Reranker.load(choice, translator, device, threads, batch_size)
        request = translator.request(nbest=1 if sampling is not None else nbest, sampling=sampling, **settings)
        request = request.telling(token_scores, tree is not None)
        written = (nbest if sampling is None else sampling.samples) if choice is None else 1
        aligning = None
        if alignments is not None:
            aligning = WordAlignments(translator.aligner_of(request.tags, attention), batch_size)
            aligning.check()
        translation = LineTranslation(
            translator,
            request,
            source,
            prefix,
            batch_size,
            nbest=written,
            scores=scores,
            token_scores=token_scores,
            trees=open_files.enter_context(tree_file(tree)),
            choice=choice,
            constraints=constraints,
            alignments=aligning,
            on_error=on_error,
        )
        if not isinstance(target, Path):
            companion = None if alignments is None else open_files.enter_context(companion_alone(alignments))
            with in_files(source, prefix), translation.work(target) as work:
                translation.write(target, work, companion)
            return TranslatedText(None, target.lines)
        decisive = {**translation.settings(), "model": fingerprint_of(model), "precision": precision}
        with (
            translated_file(target, translation.inputs, decisive, resume, alignments) as file,
            in_files(source, prefix),
            translation.work(file) as work,
        ):
            translation.write(file, work, file.companion)
        return TranslatedText(target, file.lines)


def _check_alignments(
    alignments: Path | None,
    others: Mapping[str, Path | Destination | None],
    attention: AttentionChoice | None,
    aligner: Aligner | None,
) -> None:
    """The same of the file of alignments. others: the other files by their options."""
    if alignments is None:
        refuse({"--alignment-layer, --alignment-head": attention, "aligner": aligner}, "with --alignments")
        return
    if aligner is not None:
        refuse({"attention": attention}, "without aligner")
    for name, other in others.items():
        if isinstance(other, Path) and other.resolve() == alignments.resolve():
            raise DataError(f"--alignments {alignments} is the file of {name} too: choose another name")


def _check(source: Path | None, target: Path | Destination, resume: bool) -> None:
    """What is cheap to find wrong before a model is loaded."""
    if source is not None and (source.is_dir() or not source.exists()):
        raise DataError(f"there is no file {source}: check --input")
    if not isinstance(target, Path):
        if resume:
            raise ConfigError("--resume goes on with a file: name it with --output")
    elif source is not None and source.resolve() == target.resolve():
        raise DataError(f"--output {target} is the file to translate, and would be lost: choose another name")


def _check_tree(tree: Path | None, source: Path | None, target: Path | Destination, resume: bool) -> None:
    if tree is None:
        return
    if resume:
        raise ConfigError("--tree is written in one go, and cannot be gone on with: leave out --resume or --tree")
    for name, other in (("--input", source), ("--output", target)):
        if isinstance(other, Path) and other.resolve() == tree.resolve():
            raise ConfigError(f"--tree {tree} is {name} too, and one would be lost: choose another name")
