"""`dragoman distill`: a small, fast model that has learned from a trained one."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.options import BatchSize, Device, Engine, Precision, Threads, use_threads

if TYPE_CHECKING:
    from dragoman.distillation.pairs import TeacherPairs
    from dragoman.translator import Translator


class Choice(StrEnum):
    """Which of the teacher's hypotheses the student learns."""

    best = "best"
    closest = "closest"


def distill(
    teacher: Annotated[Path, typer.Argument(help="A model folder that translates: the model to learn from.")],
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...",
            help="Settings of the student's recipe, such as train.max_minutes=30 or model.width=192.",
            show_default=False,
        ),
    ] = None,
    *,
    student: Annotated[
        str, typer.Option("--student", help="The student's preset: tiny-fast, small-fast, or any other.")
    ],
    out: Annotated[
        Path, typer.Option("--out", help="The run folder to write; afterwards it is the student's model folder.")
    ],
    source: Annotated[
        list[Path] | None,
        typer.Option(
            "--source",
            help="Text of the source language to translate, a sentence a line, instead of the teacher's own corpora; "
            "can be given several times.",
        ),
    ] = None,
    beam: Annotated[
        int | None,
        typer.Option("--beam", min=1, help="Hypotheses that the teacher keeps a sentence (default: its own, 5)."),
    ] = None,
    choice: Annotated[
        Choice,
        typer.Option(
            "--choice",
            help="best: its most probable translation; closest: of all in the beam the one nearest to the reference.",
        ),
    ] = Choice.best,
    originals: Annotated[
        bool, typer.Option("--originals", help="The student learns from the corpora as they are too.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out where it stopped.")] = False,
    batch_size: BatchSize = 64,
    engine: Engine = "auto",
    precision: Precision = None,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Train a small model on what a larger one writes: sequence-level distillation.

    The teacher translates the source side of the corpora that its own recipe names; then an ordinary training run
    follows, with the teacher's vocabulary and validation set. A killed command goes on with --resume, wherever it was.
    """
    use_threads(threads)
    from dragoman.base.errors import ConfigError
    from dragoman.cli.train import tell_result
    from dragoman.distillation.distillation import Distillation
    from dragoman.distillation.recipe import student_recipe
    from dragoman.training.run.loop import run
    from dragoman.translator import Translator

    for given in settings or []:
        if "=" not in given:
            raise ConfigError(f"'{given}' is not a setting: write key=value, as in train.max_steps=1000")
    if source and (originals or choice is Choice.closest):
        option = "--originals" if originals else "--choice closest"
        raise ConfigError(f"{option} needs references, which a text of --source does not have: leave one of them out")
    recipe = student_recipe(teacher, student, out, source or [], settings or [])
    distillation = Distillation(
        teacher, recipe, beam, choice is Choice.closest, originals, batch_size=batch_size, precision=precision
    )
    distillation.check(resume)
    translator = Translator.load(teacher, device, engine, precision, threads)
    translator.report_cut = False  # they are counted
    work = distillation.work(translator)
    for pairs in work:
        _translate(pairs, translator)
    del translator
    tell_result(run(distillation.student(work), resume=resume))


def _translate(pairs: "TeacherPairs", translator: "Translator") -> None:
    """Do what is left of the work on a corpus. Raises DataError where nothing comes of it."""
    from dragoman.backtranslation.synthesis import KEPT, LINES, account, kept
    from dragoman.base.errors import DataError
    from dragoman.base.log import info
    from dragoman.cli.progress import LineProgress

    if pairs.finished:
        info(f"Translations of {pairs.corpus} are there already: {pairs.output}")
        return
    info(f"Translating {pairs.corpus} with {pairs.model}. If this is stopped, the same command goes on.")
    with LineProgress(pairs.count) as progress:
        counts = pairs.run(translator, lambda counts: progress.tell(counts[LINES], kept(counts)))
    info(account(counts))
    if not counts[KEPT]:
        pairs.output.unlink()
        raise DataError(f"nothing that {pairs.model} made of {pairs.corpus} is fit to learn from")
