"""Run folders: which folder contains a run, and which folder a new run may use."""

from pathlib import Path
from shlex import quote

from dragoman.base.errors import ConfigError
from dragoman.checkpoint.folder import CARD, CONFIG, META, PARAMETERS, PRECISION
from dragoman.data.held_out.sets import FOLDER as HELD_OUT
from dragoman.training.profiling.profile import JSON_FILE, TEXT_FILE
from dragoman.training.progress.report import CURVES_FILE, LOG_FILE

_FILES = (CONFIG, PARAMETERS, META, CARD, PRECISION, "tokenizer*.json", LOG_FILE, CURVES_FILE, TEXT_FILE, JSON_FILE)
"""The files that a run writes, as patterns."""
_CONTENTS = ("checkpoints/*", "training/*", f"{HELD_OUT}/*")


def contains_run(folder: Path) -> bool:
    """Return whether a folder contains a run, which may be unfinished."""
    return (folder / CONFIG).is_file() and (folder / "training").is_dir()


def start_message(folder: Path, distributed: bool, resumed: bool) -> str:
    """Return the message for a run that ends before its first update, or before the first one after it was resumed."""
    start = "interrupted; everything is saved" if resumed else "interrupted before the first update"
    return saved_message(folder, distributed, start)


def interrupted_message(folder: Path, distributed: bool, step: int, best: int | None) -> str:
    """Return the message for a run that a signal ended after `step` updates. best: step of its best model, if any."""
    model = f"the model of step {step}, not validated yet" if best is None else f"the best model, of step {best}"
    start = f"interrupted at step {step}; everything is saved, and {folder} contains {model}"
    return saved_message(folder, distributed, start)


def saved_message(folder: Path, distributed: bool, start: str) -> str:
    """Return the message for a run that ends early but can be resumed. start: the first sentence."""
    if distributed:
        return f"{start}. Resume with the same command and --resume"
    return f"{start}. Resume with: dragoman train --resume --out {quote(str(folder))}"


def check_free(folder: Path) -> None:
    """Raise ConfigError if a new run in this folder would replace files that do not belong to a run."""
    if contains_run(folder) or not folder.is_dir():
        return
    replaced = sorted(str(path.relative_to(folder)) for name in (*_FILES, *_CONTENTS) for path in folder.glob(name))
    if replaced:
        listed = ", ".join(replaced[:3]) + (f" and {len(replaced) - 3} more" if len(replaced) > 3 else "")
        raise ConfigError(f"{folder} is not a run folder, and a run would replace {listed}: choose another --out")
