"""The final model of a run: the best checkpoint, or the mean of the last or the best checkpoints."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from tiny_model import write_tiny_model
from torch import Tensor
from training_runs import SETTINGS, log_lines, write_corpus

from dragoman.base.settings.load import load_settings
from dragoman.checkpoint.folder import read_meta
from dragoman.checkpoint.store import CheckpointStore
from dragoman.checkpoint.tensors import load_tensors
from dragoman.metrics.score import Score
from dragoman.tasks.train import train
from dragoman.tasks.translation.config import TranslationRun
from dragoman.training.config import LoopConfig
from dragoman.training.progress.horizon import Horizon
from dragoman.training.progress.progress import RunProgress
from dragoman.training.run.session import Session, choose_final
from dragoman.training.validation import Validation

SCORES = {7: 6.0, 14: 9.0, 21: 2.0, 28: 4.0}
"""Validation scores by step: 14 is the best; the last three and the best three checkpoints differ."""

SIDES = (("source", "a"), ("target", "b"))


def validated(value: float, metric: str) -> Validation:
    return Validation((Score(metric, value, key=metric, better="higher"),), 0.0)


def choose(
    folder: Path, of: str, count: int, score_of_the_mean: float
) -> tuple[dict[str, Tensor], int, tuple[int, ...]]:
    """Return the parameters, the step and the averaged steps that a run writes to its folder."""
    store = CheckpointStore(folder, owned=False)
    for step in SCORES:
        write_tiny_model(store.checkpoint_folder(step), step=step, seed=step)
    loaded: list[dict[str, Tensor]] = []
    written: list[Any] = []

    def validate(_: int) -> Validation:
        """Score the parameters loaded last: the checkpoint of step 14, or a mean."""
        expected = parameters_of(folder, 14)
        is_best = all(torch.equal(loaded[-1][name], tensor) for name, tensor in expected.items())
        return validated(SCORES[14] if is_best else score_of_the_mean, config.metric)

    config = LoopConfig.model_validate({"max_steps": 28, "average": {"count": count, "of": of}})
    session = SimpleNamespace(
        config=config,
        store=store,
        out=folder,
        ranks=SimpleNamespace(broadcast=lambda value: value),
        parallel=SimpleNamespace(load=loaded.append),
        validate=validate,
        write_model=lambda out, parameters, step, validation, steps: written.append((parameters, step, steps)),
    )
    progress = RunProgress(
        Horizon(0, 0.0, 28), 28, scores={step: (score,) for step, score in SCORES.items()}, best_step=14
    )
    choose_final(cast(Session, session), progress)
    (result,) = written
    return cast(Any, result)


def parameters_of(folder: Path, step: int) -> dict[str, Tensor]:
    return load_tensors(CheckpointStore(folder, owned=False).checkpoint_folder(step) / "model.safetensors")[0]


@pytest.mark.parametrize(("of", "steps"), [("last", (14, 21, 28)), ("best", (7, 14, 28))])
@pytest.mark.parametrize("score", [9.0, 9.5])
def test_the_run_folder_contains_the_mean_of_the_chosen_checkpoints(
    tmp_path: Path, of: str, steps: tuple[int, ...], score: float
) -> None:
    """The mean is written if it is at least as good as the best checkpoint."""
    parameters, step, averaged = choose(tmp_path, of, 3, score)
    assert (step, tuple(sorted(averaged))) == (28, steps)
    stored = [parameters_of(tmp_path, each) for each in steps]
    for name, tensor in parameters.items():
        mean = torch.stack([each[name].double() for each in stored]).mean(0)
        assert torch.equal(tensor, mean.to(tensor.dtype)), name


@pytest.mark.parametrize("of", ["last", "best"])
@pytest.mark.parametrize(("count", "score"), [(3, 8.9), (0, 100.0), (1, 100.0)])
def test_a_worse_mean_or_no_mean_leaves_the_best_checkpoint(tmp_path: Path, of: str, count: int, score: float) -> None:
    parameters, step, averaged = choose(tmp_path, of, count, score)
    assert (step, averaged) == (14, ())
    expected = parameters_of(tmp_path, 14)
    assert parameters.keys() == expected.keys()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in parameters.items())


def test_a_validation_is_repeated_only_by_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A resumed run that only chooses its final model validates the best checkpoint; the scores are the same."""
    validate, steps = Session.validate, list[int]()

    def counted(session: Session, step: int) -> Validation:
        steps.append(step)
        return validate(session, step)

    monkeypatch.setattr(Session, "validate", counted)
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path, 40)
    short = ["train.max_steps=4", "train.validate_every=2", "train.average.count=0"]
    corpora = {"train": "train", "valid": "valid"}
    files = [f"data.{part}.{side}={name}.{end}" for part, name in corpora.items() for side, end in SIDES]
    config = load_settings(None, [*SETTINGS, *files, *short, "out=run"], TranslationRun)
    threads = torch.get_num_threads()
    try:
        result = train(config)
        assert steps == [2, 4]
        recorded = read_meta(tmp_path / "run").scores
        logged = [line["valid_loss"] for line in log_lines(tmp_path) if "valid_loss" in line]
        assert result.validation["loss"].value == min(logged)
        train(config, resume=True)
        assert steps == [2, 4, 4] and read_meta(tmp_path / "run").scores == recorded
    finally:
        torch.set_num_threads(threads)
