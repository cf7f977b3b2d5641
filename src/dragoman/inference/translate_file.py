"""`translate_file`: a file of any size through a model, to be gone on with after a kill."""

from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from dragoman.base.errors import ConfigError, DataError, in_files, refuse
from dragoman.base.log import quietly
from dragoman.base.machine.threads import use_threads
from dragoman.checkpoint.fingerprint import fingerprint
from dragoman.inference.line_translation import Destination, LineTranslation
from dragoman.inference.translated_file import translated_file
from dragoman.translation.request import RequestSettings, Sampling
from dragoman.translator import Translator


@dataclass(frozen=True)
class TranslatedText:
    """path: the file; None where the lines went elsewhere. lines: of it, those of earlier calls too."""

    path: Path | None
    lines: int


def translate_file(
    model: str | Path,
    source: str | Path | None,
    target: str | Path | Destination,
    *,
    resume: bool = False,
    prefix: str | Path | None = None,
    constraints: str | Path | None = None,
    nbest: int = 1,
    scores: bool = False,
    sampling: Sampling | None = None,
    batch_size: int = 64,
    engine: str = "auto",
    precision: str | None = None,
    device: str | None = None,
    threads: int | None = None,
    quiet: bool = False,
    **settings: Unpack[RequestSettings],
) -> TranslatedText:
    """Translate a file line by line, as `dragoman translate` does: N lines in, N lines out.

    Memory does not grow with the file. source: .gz, .xz and .zst too; None: the standard input. target: compressed as
    its name ends; it is complete or not there. resume: go on with what the same call left behind that was stopped.
    prefix: a file with what each translation starts with; constraints: one with the phrases that each has to hold, a
    tab between phrases and | between alternatives. nbest: write so many hypotheses a line, as `index ||| text
    ||| score`; scores: write the log-probability (nats) and a tab before each line. sampling: draw translations,
    `sampling.samples` a line, instead of searching. settings: beam, length_penalty, coverage_penalty, unknown, search,
    to, tags, glossary, keep and keep_patterns, as `Translator.request` takes them. The others are as in
    `Translator.load`.

    Raises DataError for files that are missing, unreadable or unequally long, ConfigError for settings that make no
    sense, and where the folder beside the target holds unfinished or other work, ModelError and ResourceError as
    `Translator`, Interrupted after Ctrl-C or SIGTERM, with what is done kept.
    """
    use_threads(threads)
    model, source = Path(model), None if source is None else Path(source)
    target, prefix = Path(target) if isinstance(target, str) else target, None if prefix is None else Path(prefix)
    constraints = None if constraints is None else Path(constraints)
    _check(source, target, resume)
    if sampling is not None:
        refuse({"--constraints": constraints}, "without --sample")
    with quietly(quiet):
        translator = Translator.load(model, device, engine, precision, threads)
        request = translator.request(nbest=1 if sampling is not None else nbest, sampling=sampling, **settings)
        written = nbest if sampling is None else sampling.samples
        translation = LineTranslation(translator, request, source, prefix, batch_size, written, scores, constraints)
        if not isinstance(target, Path):
            with in_files(source, prefix), translation.work(target) as work:
                translation.write(target, work)
            return TranslatedText(None, target.lines)
        decisive = {**translation.settings(), "model": fingerprint(model), "precision": precision}
        with (
            translated_file(target, translation.inputs, decisive, resume) as file,
            in_files(source, prefix),
            translation.work(file) as work,
        ):
            translation.write(file, work)
        return TranslatedText(target, file.lines)


def _check(source: Path | None, target: Path | Destination, resume: bool) -> None:
    """What is cheap to find wrong before a model is loaded."""
    if source is not None and (source.is_dir() or not source.exists()):
        raise DataError(f"there is no file {source}: check --input")
    if not isinstance(target, Path):
        if resume:
            raise ConfigError("--resume goes on with a file: name it with --output")
    elif source is not None and source.resolve() == target.resolve():
        raise DataError(f"--output {target} is the file to translate, and would be lost: choose another name")
