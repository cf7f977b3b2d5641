"""Checkpoint averaging (Vaswani et al. 2017, section 6.1: the last 5 or 20 checkpoints)."""

from collections.abc import Mapping, Sequence
from math import sqrt
from pathlib import Path

import torch
from torch import Tensor

from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.files import check_new_folder, run_of
from dragoman.base.log import quietly
from dragoman.base.progress import Progress
from dragoman.checkpoint.folder import CONFIG, META, PARAMETERS, read_config, read_meta, write_model_folder
from dragoman.checkpoint.run_state import warn_of_early_checkpoints
from dragoman.checkpoint.tensors import load_tensors
from dragoman.text.tokenizers import Tokenizers

_LEAST_SIMILARITY = 0.3
"""Minimum cosine similarity of the parameters of models that may be averaged. Two seeds of one recipe have 0.00, and
checkpoints of the first 450 updates of a run 0.85 to 0.94."""


def average_parameters(folders: Sequence[Path], *, related: bool = True) -> dict[str, Tensor]:
    """Return the mean of each parameter over model folders, by name.

    Sums are accumulated in float64, and the means are cast to the dtypes of the first folder.

    related: whether the models are known to be of one run. Raises ModelError if `folders` is empty, a folder is
    damaged, names or shapes of parameters differ, or the models are not known to be related and have no common past,
    because the mean of unrelated parameters is no model.
    """
    if not folders:
        raise ModelError("no checkpoint to average: pass at least one model folder")
    sums: dict[str, Tensor] = {}
    dtypes: dict[str, torch.dtype] = {}
    with Progress("Averaging", "checkpoints", len(folders)) as progress:
        for done, folder in enumerate(folders):
            progress.update(done)
            stored, _ = load_tensors(Path(folder) / PARAMETERS)
            if not sums:
                dtypes = {name: tensor.dtype for name, tensor in stored.items()}
                sums = {name: torch.zeros(tensor.shape, dtype=torch.float64) for name, tensor in stored.items()}
            mismatched = sorted(sums.keys() ^ stored.keys())
            mismatched += [name for name in sums if name in stored and stored[name].shape != sums[name].shape]
            if mismatched:
                raise ModelError(f"{folder} and {folders[0]} are different models: {', '.join(mismatched[:5])} differ")
            if done and not related and (similarity := _similarity(sums, stored)) < _LEAST_SIMILARITY:
                raise ModelError(
                    f"{folder} and {folders[0]} cannot be averaged: the cosine similarity of their parameters is "
                    f"{similarity:.2f}, so they are not checkpoints of one run, nor fine-tuned from one model. Use "
                    "them as an ensemble, with --ensemble"
                )
            for name, tensor in stored.items():
                sums[name] += tensor.double()
    return {name: (total / len(folders)).to(dtypes[name]) for name, total in sums.items()}


def _similarity(sums: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> float:
    """Return the cosine similarity of all matrices; 1 if there are none, or if one side is zero."""
    names = [name for name, tensor in sums.items() if tensor.dim() > 1]
    product = sum(float((sums[name] * other[name].double()).sum()) for name in names)
    norms = [sum(float(side[name].double().square().sum()) for name in names) for side in (sums, other)]
    return product / sqrt(norms[0] * norms[1]) if all(norms) else 1.0


def average(checkpoints: Sequence[str | Path], out: str | Path, *, quiet: bool = False) -> Path:
    """Average the parameters of `checkpoints`, write them to the model folder `out`, and return its path.

    The settings, the tokenizers, the word aligner and the shortlist (`copy_companions`) are those of the last
    checkpoint. Scores are not copied. Raises ModelError as `average_parameters` does, and if vocabularies or
    architectures differ. Raises ConfigError if `out` exists. Warns of a run that has not ended.

    >>> from dragoman import average
    >>> average(["runs/ende", "runs/ende"], "runs/mean")
    PosixPath('runs/mean')
    """
    folders, out = [Path(folder) for folder in checkpoints], Path(out)
    if any(out.resolve() == folder.resolve() for folder in folders):
        raise ConfigError(f"--out {out} is one of the models to average and would be overwritten: choose another name")
    check_new_folder(out)
    metas = [read_meta(folder) for folder in folders]
    with quietly(quiet):
        for run in dict.fromkeys(map(run_of, folders)):
            if (run / META).is_file():  # a run that was killed may have checkpoints only
                warn_of_early_checkpoints(run, read_meta(run))
        parameters = average_parameters(folders, related=False)
    tokenizers = [Tokenizers.load(folder) for folder in folders]
    models = [read_config(folder)["model"] for folder in folders]
    for folder, vocabulary, model in zip(folders, tokenizers, models, strict=True):
        if vocabulary.fingerprint != tokenizers[-1].fingerprint:
            raise ModelError(f"{folder} and {folders[-1]} have different vocabularies and cannot be averaged")
        if model != models[-1]:
            raise ModelError(f"{folder} and {folders[-1]} have different model sections in {CONFIG}")
    steps = tuple(sorted({step for meta in metas for step in (meta.averaged_steps or (meta.step,))}))
    other = {"scores": (), "verdict": None, "unfinished": False}
    meta = metas[-1].model_copy(update={"step": max(steps), "averaged_steps": steps, **other})
    config_yaml = (folders[-1] / CONFIG).read_text(encoding="utf-8")
    write_model_folder(out, parameters, config_yaml, tokenizers[-1], meta, companions_of=folders[-1])
    return out
