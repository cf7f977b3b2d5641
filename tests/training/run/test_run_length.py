"""Settings that cannot take effect within a run are reported before its first update."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.cli.main import main
from dragoman.tasks.translation.config import TranslationLoopConfig
from dragoman.training.config import LoopConfig
from dragoman.training.run.run_length import RunLength


def problems(
    train: dict[str, Any],
    updates: int | None,
    *,
    batches: int = 50,
    per_epoch: int = 50,
    depth: int | None = None,
    config: type[LoopConfig] = LoopConfig,
) -> list[str]:
    """Return the problems of a run. updates: as in `RunLength`; also sets max_steps."""
    limit = {} if updates is None else {"max_steps": updates}
    chosen = config.model_validate({**limit, **train})
    length = RunLength(updates, 1000, batches, per_epoch)
    return list(length.problems(chosen.resolve(64), chosen.model_fields_set, depth))


COSINE = {"schedule": {"kind": "cosine", "warmup": 10}}


@pytest.mark.parametrize(
    ("train", "updates", "message"),
    [
        ({"schedule": {"kind": "cosine", "warmup": 4000}}, 300, "train.schedule.warmup=4000 is longer than the run of"),
        ({"schedule": {"kind": "constant", "warmup": 301}}, 300, "the learning rate reaches only 99.7% of its peak"),
        ({}, 200, "the automatic warm-up of 250 updates is longer than the run of 200 updates"),
        ({"schedule": {"warmup": 5500}, "patience": 10}, None, "train.patience=10 can end the run after 5,500 updates"),
        ({**COSINE, "validate_every": 101}, 100, "train.validate_every=101 is longer than the run of 100 updates"),
        ({**COSINE, "checkpoint_every": 101}, 100, "train.checkpoint_every=101 is longer than the run of 100 updates"),
        ({**COSINE, "log_every": 101}, 100, "train.log_every=101 is longer than the run of 100 updates"),
        ({**COSINE, "patience": 4, "validate_every": 20}, 100, "train.patience=4 has no effect"),
        ({**COSINE, "average": {"count": 6}, "checkpoint_every": 20, "validate_every": 20}, 100, "at most 5. Lower"),
        ({**COSINE, "average": {"count": 9}, "checkpoint_every": 20, "validate_every": 30}, 100, "at most 7. Lower"),
        ({**COSINE, "average": {"count": 5, "of": "best"}, "validate_every": 30}, 100, "Lower train.average.count or "),
        ({**COSINE, "dropout_epochs": 4}, 100, "dropout reaches only 50.0% of the model's rates"),
        ({**COSINE, "accumulate": 51}, 100, "train.accumulate=51 is more than the 50 batches of an epoch"),
    ],
)
def test_a_setting_without_effect_is_reported(train: dict[str, Any], updates: int | None, message: str) -> None:
    (problem,) = problems(train, updates)
    assert message in problem


@pytest.mark.parametrize(
    ("train", "updates"),
    [
        ({"schedule": {"kind": "cosine", "warmup": 300}}, 300),
        ({"schedule": {"kind": "cosine", "warmup": 0.5}}, 3),
        ({}, 251),
        ({}, None),
        ({"schedule": {"warmup": 5499}, "patience": 10}, None),
        ({**COSINE, "validate_every": 100, "checkpoint_every": 100, "log_every": 100}, 100),
        ({**COSINE, "patience": 3, "validate_every": 20}, 100),
        ({**COSINE, "average": {"count": 5}, "checkpoint_every": 20, "validate_every": 20}, 100),
        ({**COSINE, "average": {"count": 7}, "checkpoint_every": 20, "validate_every": 30}, 100),
        ({**COSINE, "average": {"count": 4, "of": "best"}, "validate_every": 30}, 100),
        ({**COSINE, "average": {"count": 1}}, 100),
        ({**COSINE, "dropout_epochs": 2}, 100),
        ({**COSINE, "accumulate": 50}, 100),
    ],
)
def test_a_setting_that_just_takes_effect_is_not_reported(train: dict[str, Any], updates: int | None) -> None:
    assert problems(train, updates) == []


@given(st.integers(1, 400), st.integers(1, 400), st.sampled_from(["inverse_sqrt", "cosine", "linear", "constant"]))
def test_a_warm_up_is_reported_if_the_rate_stays_below_its_peak(updates: int, warmup: int, kind: str) -> None:
    train = {"schedule": {"kind": kind, "warmup": warmup, "peak": 1.0}}
    schedule = LoopConfig.model_validate({**train, "max_steps": updates}).schedule
    assert schedule is not None
    factors = [schedule.warmup_factor(step, step / updates) for step in range(1, updates + 1)]
    assert bool(problems(train, updates)) == (max(factors) < 1)


def test_layers_that_are_never_trained_are_counted() -> None:
    train = {**COSINE, "unfreeze_every": 2, "start": "runs/body"}
    (problem,) = problems(train, 200, depth=3)  # epochs 1 to 4: the head, then the layer below
    assert "leaves the lowest 2 of 4 layers frozen" in problem
    assert "from epoch 7 on" in problem
    assert problems(train, 350, depth=3) == []


def test_a_corpus_of_one_batch_is_reported() -> None:
    (problem,) = problems(COSINE, 100, batches=1, per_epoch=1)
    assert "an epoch is a single batch" in problem


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        ({"kind": "linear", "steps": 1000}, 1),
        ({"kind": "linear", "steps": 300}, 0),
        ({"kind": "linear"}, 0),
        ({"kind": "exponential", "base": 0.9998}, 1),
        ({"kind": "exponential", "base": 0.99}, 0),
        ({"kind": "inverse_sigmoid", "speed": 1000}, 1),
        ({"kind": "constant", "value": 0.5}, 0),
    ],
)
def test_a_teacher_forcing_ratio_that_hardly_falls_is_reported(ratio: dict[str, Any], expected: int) -> None:
    found = problems({**COSINE, "teacher_forcing": ratio}, 100, config=TranslationLoopConfig)
    assert len(found) == expected
    assert all("train.teacher_forcing of kind" in problem for problem in found)


def test_the_command_reports_them_and_a_limit_below_the_updates_so_far(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("train", "valid"):
        (tmp_path / name).write_text("".join(f"{name} {number}\t{number} {name}\n" for number in range(40)))
    recipe = f"""
        data: {{train: {{pairs: {tmp_path}/train}}, valid: {{pairs: {tmp_path}/valid}}, batch: {{tokens: 64}}}}
        text: {{subword: {{kind: character}}}}
        model: {{preset: tiny, width: 16, encoder: {{layers: 1}}, decoder: {{layers: 1}}}}
        train: {{max_steps: 2, checkpoint_every: 1, validate_every: 1000, threads: 1, precision: float32}}
        out: {tmp_path}/run
    """
    (tmp_path / "recipe.yaml").write_text(recipe)
    assert main(["train", str(tmp_path / "recipe.yaml")]) == 0
    printed = capsys.readouterr().err
    assert "warning: train.validate_every=1,000 is longer than the run of 2 updates" in printed
    assert "warning: the automatic warm-up of 250 updates is longer than the run of 2 updates" in printed
    assert printed.index("warning: train.validate_every") < printed.index("step 2 · ")
    assert main(["train", "--resume", "--out", str(tmp_path / "run"), "train.max_steps=1"]) == 0
    printed = capsys.readouterr().err
    assert "warning: nothing is left to train: the run already has 2 updates" in printed
    assert "train.validate_every" not in printed
