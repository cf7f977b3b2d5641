"""Choosing the parameters that a finished run leaves in its folder."""

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from dragoman.base.log import info
from dragoman.checkpoint.average import average_parameters
from dragoman.checkpoint.tensors import load_tensors
from dragoman.train.parts import Parts
from dragoman.train.progress import Progress
from dragoman.train.validation.validator import Validation


def choose_final(parts: Parts, progress: Progress) -> Validation:
    """Write to the run's folder the best checkpoint, or the mean of several if that is better on the validation set."""
    config = parts.config.train
    assert progress.best_step is not None
    best = parts.store.checkpoint_folder(progress.best_step)
    parameters, _ = load_tensors(best / "model.safetensors")
    validation = _judged(parts, parameters, progress.step)
    step = progress.best_step
    steps: tuple[int, ...] = ()
    chosen = f"the checkpoint of step {progress.best_step}"
    paths = parts.store.checkpoints()
    if config.average.of == "best":
        paths = [path for step in progress.ranked() if (path := parts.store.checkpoint_folder(step)).exists()][::-1]
    paths = paths[-config.average.count :] if config.average.count else []
    paths = [Path(path) for path in parts.ranks.tell(list(map(str, paths)))]
    if len(paths) > 1:
        mean = average_parameters(paths)
        averaged = _judged(parts, mean, progress.step)
        info(
            f"Mean of {len(paths)} checkpoints: validation loss {averaged.loss:.4f} · BLEU {averaged.bleu.value:.2f}; "
            f"{chosen}: {validation.loss:.4f} · {validation.bleu.value:.2f}"
        )
        if averaged.measure(config.metric) >= validation.measure(config.metric):
            parameters, validation = mean, averaged
            steps = tuple(int(path.name.removeprefix("step-")) for path in paths)
            step = max(steps)
            chosen = f"the mean of the {config.average.of} {len(paths)} checkpoints"
    parts.write_model(parts.config.out, parameters, step, validation, steps)
    info(f"{parts.config.out} holds {chosen}: {validation.bleu}")
    return validation


def _judged(parts: Parts, parameters: Mapping[str, Tensor], step: int) -> Validation:
    parts.parallel.show(parameters)
    return parts.validate(step)
