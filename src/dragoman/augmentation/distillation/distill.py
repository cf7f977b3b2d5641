"""`distill`: a small, fast model that has learned from a trained one."""

from collections.abc import Sequence
from pathlib import Path

from dragoman.augmentation.backtranslation.synthesis import KEPT, account
from dragoman.augmentation.distillation.distillation import Distillation
from dragoman.augmentation.distillation.pairs import TeacherPairs
from dragoman.augmentation.distillation.recipe import student_recipe
from dragoman.base.errors import ConfigError, DataError
from dragoman.base.log import info, quietly
from dragoman.base.machine.device import use_threads
from dragoman.base.settings.load import Overrides
from dragoman.tasks.train import train
from dragoman.training.run.loop import TrainingResult
from dragoman.translation.translator import Translator

CHOICES = ("best", "closest")


def distill(
    teacher: str | Path,
    student: str,
    out: str | Path,
    overrides: Overrides = (),
    *,
    source: Sequence[str | Path] = (),
    beam: int | None = None,
    choice: str = "best",
    originals: bool = False,
    resume: bool = False,
    batch_size: int = 64,
    engine: str = "auto",
    precision: str | None = None,
    device: str | None = None,
    threads: int | None = None,
    quiet: bool = False,
) -> TrainingResult:
    """Train a small model on what a larger one writes, as `dragoman distill` does (Kim & Rush 2016).

    teacher: the larger model's folder; student: the smaller one's preset; out: the run folder. overrides: of the
    student's recipe, as in `train`. source: files to translate instead of the teacher's own corpora. beam: hypotheses
    that the teacher keeps (default: its own setting). choice: `best`, its most probable translation, or `closest`, the
    one nearest to the reference. originals: the student learns from the corpora as they are too. resume: go on where
    the same call was stopped. The others are as in `Translator.load`, for the teacher.

    Raises ConfigError for what does not go together, DataError where files are missing or nothing that the teacher
    writes is fit to learn from, and what `train` raises.
    """
    use_threads(threads)
    teacher, sources = Path(teacher), [Path(each) for each in source]
    if choice not in CHOICES:
        raise ConfigError(f"there is no choice {choice!r}: take one of {', '.join(CHOICES)}")
    if sources and (originals or choice == "closest"):
        option = "--originals" if originals else "--choice closest"
        raise ConfigError(f"{option} needs references, which a text of --source does not have: leave one of them out")
    with quietly(quiet):
        recipe = student_recipe(teacher, student, Path(out), sources, overrides)
        distillation = Distillation(
            teacher, recipe, beam, choice == "closest", originals, batch_size=batch_size, precision=precision
        )
        distillation.check(resume)
        translator = Translator.load(teacher, device, engine, precision, threads)
        translator.report_cut = False  # they are counted
        work = distillation.work(translator)
        for pairs in work:
            _translate(pairs, translator)
        del translator
        return train(distillation.student(work), resume=resume)


def _translate(pairs: TeacherPairs, translator: Translator) -> None:
    """Do what is left of the work on a corpus. Raises DataError where nothing comes of it."""
    if pairs.finished:
        info(f"Translations of {pairs.corpus} are there already: {pairs.output}")
        return
    info(f"Translating {pairs.corpus} with {pairs.model}. If this is stopped, the same command goes on.")
    counts = pairs.run(translator)
    info(account(counts))
    if not counts[KEPT]:
        pairs.output.unlink()
        raise DataError(f"nothing that {pairs.model} made of {pairs.corpus} is fit to learn from")
