"""The choice of `model.preset=auto` for classes and numbers, by short runs on the same examples."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from dragoman.base.errors import ConfigError, DivergenceError, Interrupted
from dragoman.base.log import info, quietly
from dragoman.base.settings.load import load_settings
from dragoman.checkpoint.folder import CONFIG
from dragoman.models.kinds.encoder_only import EncoderOnlyConfig
from dragoman.tasks.labelled.config import ClassificationRun, RegressionRun
from dragoman.training.run.result import TrainingResult
from dragoman.training.run.run_clock import return_start, take_start
from dragoman.training.task import RunConfig

LINEAR, CANDIDATES = "ngrams", ("mean", "rnn", "tiny")

_SECONDS, _SHARE = 20.0, 0.05
"""Length of a short run: this number of seconds, but at most this fraction of `train.max_minutes`."""

_MOST_BYTES = 100_000_000
"""Maximum size of the training files. Larger ones take long to read, and have enough examples for a neural model."""


def choose_preset(config: RunConfig, train: Callable[[RunConfig], TrainingResult], resume: bool = False) -> RunConfig:
    """Return the settings with `model.preset=auto` replaced by the linear model if it is the best one.

    It is compared with short runs of other presets on the same validation set. The preset remains `auto`, which depends
    on the number of examples, if one of these is better, for pairs of texts, which a linear model cannot compare, if
    the model is set up further, if it starts from another model, if the number of updates is limited, and for training
    files of more than 100 MB.

    train: trains a run. resume: whether the run is resumed, which keeps its choice.
    """
    if not isinstance(config, ClassificationRun | RegressionRun) or not _is_open(config):
        return config
    if (config.out / CONFIG).is_file():
        return _as_before(config) if resume else config
    begun, limit = take_start(), config.train.max_minutes
    seconds = _SECONDS if limit is None else min(_SECONDS, 60 * _SHARE * limit)
    results: dict[str, TrainingResult] = {}
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        for name in (LINEAR, *CANDIDATES):
            info(f"Preset: trying {name}" + ("" if name == LINEAR else f" for {seconds:.0f} seconds"))
            candidate = _candidate(config, name, seconds, Path(folder) / name)
            try:
                with quietly(warnings=True):  # those of the data are repeated by the run itself
                    results[name] = train(candidate)
            except DivergenceError:
                continue
            except Interrupted as stop:  # its message names the folder of the short run
                message = f"interrupted while presets were compared; nothing was written to {config.out}"
                raise Interrupted(message, stop.exit_code - 128) from None
            if name == LINEAR and _reads_pairs(candidate):
                results.clear()
                break
    return_start(begun)
    if not results:
        return config
    metric = config.train.metric
    scores = {name: result.validation.deciding(metric)[0] for name, result in results.items()}
    ranked = sorted(scores, key=lambda name: scores[name].merit, reverse=True)  # of equal ones, the linear model
    listed = ", ".join(f"{name} {scores[name].value:.{scores[name].digits}f}" for name in ranked)
    info(f"Preset: {scores[ranked[0]].name} on the validation set after short runs: {listed}")
    if ranked[0] != LINEAR:
        return config
    info("Preset: ngrams, a linear model of n-grams. model.preset selects another one")
    return _with_preset(config, LINEAR)


def _is_open(config: ClassificationRun | RegressionRun) -> bool:
    """Return whether nothing but a measurement decides on the preset."""
    model, train = config.model, config.train
    limited = train.max_steps is not None or train.max_epochs is not None
    if model.preset != "auto" or model.model_fields_set - {"kind", "preset", "head"} or limited or train.start:
        return False
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 or _bytes(config) > _MOST_BYTES:
        return False
    try:
        model.with_preset(LINEAR)
    except ValidationError:  # the head is not linear
        return False
    return True


def _bytes(config: ClassificationRun | RegressionRun) -> int:
    """Return the size of the training files that exist."""
    corpora = config.data.train if isinstance(config.data.train, tuple) else (config.data.train,)
    files = [path for corpus in corpora for path in corpus.files]
    return sum(path.stat().st_size for path in files if path.is_file())


def _as_before(config: ClassificationRun | RegressionRun) -> ClassificationRun | RegressionRun:
    """Return the settings with the linear model if the folder of the run, or of its seeds, has it."""
    try:
        stored = load_settings(config.out / CONFIG, [], type(config)).model.preset
    except ConfigError:  # reported when the run is opened
        return config
    return _with_preset(config, LINEAR) if stored == LINEAR else config


def _with_preset(config: ClassificationRun | RegressionRun, preset: str) -> ClassificationRun | RegressionRun:
    return config.model_copy(update={"model": config.model.with_preset(preset)})


def _candidate(
    config: ClassificationRun | RegressionRun, preset: str, seconds: float, out: Path
) -> ClassificationRun | RegressionRun:
    train = config.train.model_copy(update={"max_minutes": seconds / 60})
    return _with_preset(config, preset).model_copy(update={"train": train, "out": out})


def _reads_pairs(candidate: ClassificationRun | RegressionRun) -> bool:
    model: EncoderOnlyConfig = load_settings(candidate.out / CONFIG, [], type(candidate)).model
    return getattr(model.head, "texts", None) == 2
