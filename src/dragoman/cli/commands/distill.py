"""`dragoman distill`: train a small, fast model on the translations of a larger model."""

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.arguments import check_settings
from dragoman.cli.command import command
from dragoman.cli.option_groups import EngineOptions
from dragoman.cli.options import Divide, Quiet
from dragoman.cli.setting_names import check_setting_names


class Choice(StrEnum):
    """Criteria for choosing the teacher's hypothesis that becomes the student's target."""

    best = "best"
    closest = "closest"


@command(
    "dragoman distill runs/large --student tiny-fast --out runs/small",
    takes_run_settings=True,
    interrupted="interrupted: completed work is kept. Repeat the same command to resume, with --resume if the "
    "student's training has begun",
)
def distill(
    teacher: Annotated[Path, typer.Argument(help="Folder of a translation model, the teacher.")],
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...",
            help="Settings of the student's recipe, such as train.max_minutes=30 or model.width=192.",
            show_default=False,
        ),
    ] = None,
    *,
    student: Annotated[str, typer.Option("--student", help="The student's preset, such as tiny-fast or small-fast.")],
    out: Annotated[Path, typer.Option("--out", help="Run folder to write; it becomes the student's model folder.")],
    source: Annotated[
        list[Path] | None,
        typer.Option(
            "--source",
            help="Text to translate instead of the teacher's training corpora, one sentence per line; repeatable.",
        ),
    ] = None,
    beam: Annotated[
        int | None,
        typer.Option("--beam", min=1, help="Beam size of the teacher (default: the teacher's setting, 5)."),
    ] = None,
    choice: Annotated[
        Choice,
        typer.Option(
            "--choice",
            help="best: the most probable translation; closest: the hypothesis most similar to the reference.",
        ),
    ] = Choice.best,
    originals: Annotated[bool, typer.Option("--originals", help="Train on the original corpora as well.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the run in --out.")] = False,
    divide: Divide = True,
    engine_options: EngineOptions,
    quiet: Quiet = False,
) -> None:
    """Train a small model on the translations of a larger one.

    This is sequence-level distillation: the teacher translates the source side of its training corpora. The student is
    then trained with the teacher's vocabulary and validation set. --resume resumes an interrupted command in either
    phase.
    """
    from dragoman.cli.commands.train import print_result
    from dragoman.tasks.augmentation.distill import distill

    check_settings(settings or [])
    check_setting_names(None, settings or [])
    result = distill(
        teacher,
        student,
        out,
        settings or [],
        source=source or [],
        beam=beam,
        choice=choice,
        originals=originals,
        resume=resume,
        divide=divide,
        **asdict(engine_options),
    )
    print_result(result)
