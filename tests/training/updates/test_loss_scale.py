"""The loss scale of float16 shifts the range only, and is adjusted like torch's."""

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_engine import CPU, batch, engine, values

from dragoman.base.errors import DivergenceError
from dragoman.training.machine import precision as module
from dragoman.training.machine.precision import LossScale
from dragoman.training.objectives.objective import TrainingPoint
from dragoman.training.progress.horizon import Horizon
from dragoman.training.progress.progress import DivergenceWatch, RunProgress
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.updates.update import Update

WHOLE = Update([batch(0, 8)])


@pytest.mark.parametrize("clip", [None, 0.1])
def test_a_scale_changes_nothing(tmp_path: Path, clip: float | None) -> None:
    """Bit for bit, in a number type that does not need it."""
    plain, scaled = engine(tmp_path, dropout=0.1, clip=clip), engine(tmp_path, dropout=0.1, clip=clip)
    expected = plain.step(WHOLE, TrainingPoint(1), 1.0)
    assert scaled.step(WHOLE, TrainingPoint(1), 1.0, LossScale(2.0**12)) == expected
    assert torch.equal(values(scaled.model), values(plain.model))


def test_an_overflow_changes_nothing_and_halves_the_scale(tmp_path: Path) -> None:
    subject, scale, watch = engine(tmp_path), LossScale(2.0**130), DivergenceWatch()
    before = values(subject.model)
    result = subject.step(WHOLE, TrainingPoint(1), 1.0, scale)
    assert torch.equal(values(subject.model), before)
    assert (scale.value, scale.steps) == (2.0**129, 0)
    assert (result.gradient_norm, result.counts) == (0.0, {"overflowed updates": [1.0]})
    watch.check(1, result)
    assert all(parameter.grad is None for parameter in subject.model.parameters())
    calm = LossScale()
    assert subject.step(WHOLE, TrainingPoint(2), 1.0, calm).gradient_norm > 0
    assert calm.steps == 1


@given(st.lists(st.booleans(), max_size=60))
def test_it_changes_like_torchs_scaler(overflows: list[bool]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_GROWTH_INTERVAL", 3)
        patch.setattr(module, "_MIN_SCALE", 0.0)
        patch.setattr(module, "_MAX_SCALE", float("inf"))
        ours, value, steps = LossScale(), torch.tensor(2.0**16), torch.tensor(0, dtype=torch.int32)
        for step, overflowed in enumerate(overflows):
            ours.update(overflowed, step)
            torch._amp_update_scale_(value, steps, torch.tensor(float(overflowed)), 2.0, 0.5, 3)
            assert (ours.value, ours.steps) == (float(value), int(steps))


def test_training_ends_if_no_scale_helps() -> None:
    scale = LossScale()
    for step in range(1, 27):
        scale.update(True, step)
    with pytest.raises(DivergenceError, match="gradients overflow float16 at step 27 even with the smallest"):
        scale.update(True, 27)


def test_float16_learns_as_float32(tmp_path: Path) -> None:
    losses = {}
    for precision in (torch.float32, torch.float16):
        subject, scale = engine(tmp_path), LossScale()
        subject.runtime = Runtime(CPU, precision)
        kind = scale if precision == torch.float16 else None
        losses[precision] = [subject.step(WHOLE, TrainingPoint(step), 0.1, kind).loss for step in range(1, 31)]
    assert losses[torch.float32][-1] < 0.8 * losses[torch.float32][0]
    assert losses[torch.float16] == pytest.approx(losses[torch.float32], rel=0.01)


def test_a_gradient_too_small_for_float16_is_kept_by_the_scale(tmp_path: Path) -> None:
    """The loss is divided by a very large number of tokens."""
    found = {}
    for name, precision, scale in (
        ("exact", torch.float32, None),
        ("scaled", torch.float16, LossScale(2.0**24)),
        ("plain", torch.float16, None),
    ):
        subject = engine(tmp_path)
        subject.runtime = Runtime(CPU, precision)
        tokens = {"": 10**10}
        before = values(subject.model)
        subject.step(Update([batch(0, 8)], tokens=tokens), TrainingPoint(1), 1e8, scale)
        found[name] = before - values(subject.model)
    exact = found["exact"]
    assert float((found["scaled"] - exact).norm() / exact.norm()) < 0.01
    assert float((found["plain"] - exact).norm() / exact.norm()) > 0.1


def test_it_is_stored_with_the_progress() -> None:
    progress = RunProgress(Horizon(0, 0.0, 3), loss_scale=LossScale(2.0**9, 17))
    values = json.loads(json.dumps(progress.to_json()))
    assert RunProgress.from_json(dict(values)).loss_scale == LossScale(2.0**9, 17)
    del values["loss_scale"]  # of a run that began before there was a loss scale
    assert RunProgress.from_json(values).loss_scale == LossScale()
