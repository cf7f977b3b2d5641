"""Choosing the parameters that a finished run leaves in its folder."""

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from dragoman.base.log import info
from dragoman.checkpoint.average import average_parameters
from dragoman.checkpoint.tensors import load_tensors
from dragoman.training.progress.progress import Progress
from dragoman.training.run.session import Session
from dragoman.training.validation import Validation


def choose_final(session: Session, progress: Progress) -> Validation:
    """Write to the run's folder the best checkpoint, or the mean of several if that is better on the validation set."""
    config = session.config
    assert progress.best_step is not None
    best = session.store.checkpoint_folder(progress.best_step)
    parameters, _ = load_tensors(best / "model.safetensors")
    validation = _judged(session, parameters, progress.step)
    step = progress.best_step
    steps: tuple[int, ...] = ()
    chosen = f"the checkpoint of step {progress.best_step}"
    paths = session.store.checkpoints()
    if config.average.of == "best":
        paths = [path for step in progress.ranked() if (path := session.store.checkpoint_folder(step)).exists()][::-1]
    paths = paths[-config.average.count :] if config.average.count else []
    paths = [Path(path) for path in session.ranks.broadcast(list(map(str, paths)))]
    if len(paths) > 1:
        mean = average_parameters(paths)
        averaged = _judged(session, mean, progress.step)
        info(f"Mean of {len(paths)} checkpoints: validation {averaged.brief()}; {chosen}: {validation.brief()}")
        if averaged.score(config.metric) >= validation.score(config.metric):
            parameters, validation = mean, averaged
            steps = tuple(int(path.name.removeprefix("step-")) for path in paths)
            step = max(steps)
            chosen = f"the mean of the {config.average.of} {len(paths)} checkpoints"
    session.write_model(session.out, parameters, step, validation, steps)
    info(f"{session.out} holds {chosen}: {validation[config.metric].full()}")
    return validation


def _judged(session: Session, parameters: Mapping[str, Tensor], step: int) -> Validation:
    session.parallel.show(parameters)
    return session.validate(step)
