"""What a run folder shows of its run: whether a process is training in it, and how far an unfinished run came."""

import fcntl
import os
from pathlib import Path
from shlex import quote

from dragoman.base.log import warn
from dragoman.checkpoint.meta import Meta

LOCK = ".lock"
"""The file that a run locks in its folder, and in which it writes the number of its process."""


def training_process(folder: Path) -> str | None:
    """Return the number of the process that is training in a folder, as text, or None if no process is training there.

    The current process does not count.
    """
    try:
        with (folder / LOCK).open() as file:
            process = file.read(32).strip()
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return None if process == str(os.getpid()) else process or "unknown"
    except OSError:
        return None
    return None


def warn_of_unfinished_run(folder: Path, meta: Meta) -> None:
    """Warn if the model of a folder is not the final one of its run, which may be running or interrupted.

    A process may also hold the lock of a folder with a final model, while it measures the model.
    """
    if not meta.unfinished:
        return
    validated = bool(meta.scores)
    if process := training_process(folder):
        model = f"its best model so far, of step {meta.step:,}," if validated else "a model that was not validated yet,"
        warn(f"process {process} is still training in {folder}: this is {model} which the run will replace")
    else:
        step = _reached_step(folder, meta)
        model = f"this is its best model so far, of step {meta.step:,}" if validated else "not validated yet"
        if not validated and step != meta.step:
            model += f"; this is its model of step {meta.step:,}"
        warn(f"{_interrupted(folder, meta)}, {model}; {_resume(folder)}")


def warn_of_early_checkpoints(run: Path, meta: Meta) -> None:
    """Warn if a run whose checkpoints are used has not ended. meta: of the model in the run's folder."""
    if not meta.unfinished:
        return
    if process := training_process(run):
        warn(f"process {process} is still training in {run}: later checkpoints may be better")
    else:
        warn(f"{_interrupted(run, meta)}: later checkpoints may be better; {_resume(run)}")


def _interrupted(folder: Path, meta: Meta) -> str:
    step = _reached_step(folder, meta)
    planned = f" of {meta.planned_steps:,}" if meta.planned_steps and meta.planned_steps > step else ""
    return f"{folder} is a run interrupted at step {step:,}{planned}"


def _reached_step(folder: Path, meta: Meta) -> int:
    return max(meta.step, _saved_step(folder))


def missing_model(folder: Path) -> str | None:
    """Return why the folder of a run has no model, and what to do; None if the folder does not belong to a run."""
    if not (folder / "training").is_dir():
        return None
    if not (folder / "config.yaml").is_file():
        return (
            f"{folder} is the folder of a run that was interrupted while it prepared its data, so it has no model: "
            "repeat the command that started it"
        )
    step = _saved_step(folder)
    when = f"after step {step:,}, before it had written" if step else "before its first update was saved, so it has no"
    return f"{folder} is a run interrupted {when}{' a' if step else ''} model; {_resume(folder)}"


def _resume(folder: Path) -> str:
    return f"`dragoman train --resume --out {quote(str(folder))}` continues it"


def _saved_step(folder: Path) -> int:
    """Return the step of the newest snapshot in a run folder, or 0."""
    return max((int(path.name[5:]) for path in folder.glob("training/step-*") if path.name[5:].isdecimal()), default=0)
