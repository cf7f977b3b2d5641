"""Learning-rate schedules against their formulas."""

from itertools import pairwise
from math import cos, pi
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from dragoman.tasks.translation.config import TranslationLoopConfig
from dragoman.training.config import LoopConfig
from dragoman.training.optimisers.schedule import (
    ConstantConfig,
    CosineConfig,
    InverseSquareRootConfig,
    LinearConfig,
    ScheduleConfig,
    default_schedule,
)

STEPS = 1000
STEPS_TRIED = [1, 2, 50, 99, 100, 101, 250, 999, 1000]


def rates(schedule: ScheduleConfig, steps: int = STEPS, width: int = 512) -> list[float]:
    """The rates of all steps of a run; index 0 is step 1."""
    return [schedule.rate(step, step / steps, width) for step in range(1, steps + 1)]


@pytest.mark.parametrize("width", [128, 512])
@pytest.mark.parametrize("warmup", [100, 4000])
def test_inverse_square_root_is_equation_3(width: int, warmup: int) -> None:
    schedule = InverseSquareRootConfig(warmup=warmup)
    for step in [*STEPS_TRIED, 4000, 100_000]:
        expected = width**-0.5 * min(step**-0.5, step * warmup**-1.5)
        assert schedule.rate(step, 0.0, width) == pytest.approx(expected, rel=1e-12)


def test_inverse_square_root_with_a_peak() -> None:
    schedule = InverseSquareRootConfig(peak=5e-4, warmup=100)
    for step in STEPS_TRIED:
        expected = 5e-4 * (step / 100 if step < 100 else (100 / step) ** 0.5)
        assert schedule.rate(step, 0.0, 77) == pytest.approx(expected, rel=1e-12)


def after(step: int) -> float:
    return max(0.0, (step - 100) / (STEPS - 100))


FORMULAS = [
    (ConstantConfig, {}, lambda step: 1.0),
    (LinearConfig, {"floor": 0.2}, lambda step: 1 - 0.8 * after(step)),
    (LinearConfig, {}, lambda step: 1 - after(step)),
    (CosineConfig, {"floor": 0.2}, lambda step: 0.2 + 0.8 * (1 + cos(pi * after(step))) / 2),
    (CosineConfig, {}, lambda step: (1 + cos(pi * after(step))) / 2),
]


@pytest.mark.parametrize("warmup", [100, 0.1])
@pytest.mark.parametrize(("kind", "floor", "height"), FORMULAS)
def test_formulas_with_a_warm_up_in_steps_and_as_a_share(
    kind: Any, floor: dict[str, float], height: Any, warmup: float
) -> None:
    found = rates(kind(peak=2e-3, warmup=warmup, **floor))
    for step in STEPS_TRIED:
        expected = 2e-3 * min(1.0, step / 100) * height(step)
        assert found[step - 1] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_inverse_square_root_with_a_share_is_the_one_in_steps() -> None:
    share, steps = InverseSquareRootConfig(warmup=0.1), InverseSquareRootConfig(warmup=100)
    assert rates(share) == pytest.approx(rates(steps), rel=1e-9)


@pytest.mark.parametrize("warmup", [0, 1, 100, 0.1, 0.5])
@pytest.mark.parametrize("kind", [CosineConfig, LinearConfig])
@pytest.mark.parametrize("floor", [0.0, 0.05, 1.0])
def test_decays_end_at_the_floor(kind: Any, floor: float, warmup: float) -> None:
    schedule = kind(peak=3e-3, floor=floor, warmup=warmup)
    assert schedule.rate(STEPS, 1.0, 64) == pytest.approx(3e-3 * floor, abs=1e-18)


@pytest.mark.parametrize("kind", [CosineConfig, LinearConfig])
@pytest.mark.parametrize("steps", [20, 99, 100, 101])
def test_a_run_that_ends_within_the_warm_up_still_learns(kind: Any, steps: int) -> None:
    found = rates(kind(peak=1.0, warmup=100), steps)
    assert found[: steps - 1] == pytest.approx([step / 100 for step in range(1, steps)])


def test_without_a_warm_up_the_first_step_has_the_peak() -> None:
    for schedule in (ConstantConfig(peak=2e-3, warmup=0), InverseSquareRootConfig(peak=2e-3, warmup=0)):
        assert schedule.rate(1, 0.0, 64) == 2e-3


SCHEDULES = st.builds(
    lambda kind, peak, warmup, floor: TypeAdapter(ScheduleConfig).validate_python(
        {"kind": kind, "peak": peak, "warmup": warmup, **({"floor": floor} if kind in ("cosine", "linear") else {})}
    ),
    st.sampled_from(["inverse_sqrt", "cosine", "linear", "constant"]),
    st.floats(1e-6, 1.0),
    st.one_of(st.just(0.0), st.floats(0.01, 0.99), st.integers(1, 5000).map(float)),
    st.floats(0.0, 1.0),
)


@given(SCHEDULES, st.integers(1, 10_000), st.floats(0.0, 1.0))
def test_never_negative_and_never_above_the_peak(schedule: Any, step: int, progress: float) -> None:
    assert 0 <= schedule.rate(step, progress, 512) <= schedule.peak * (1 + 1e-9)


@pytest.mark.parametrize("warmup", [0, 40, 0.2])
@pytest.mark.parametrize("kind", [InverseSquareRootConfig, CosineConfig, LinearConfig, ConstantConfig])
def test_rises_to_the_peak_then_falls_without_jumps(kind: Any, warmup: float) -> None:
    found = rates(kind(peak=1.0, warmup=warmup), 200)
    top = 40 if warmup else 1
    assert found[top - 1] == pytest.approx(1.0, abs=1e-9 if warmup else 0.006)
    assert found[:top] == sorted(found[:top])
    assert found[top - 1 :] == sorted(found[top - 1 :], reverse=True)
    if warmup:
        assert max(abs(now - before) for before, now in pairwise(found)) <= 1 / 40 + 1e-9


@pytest.mark.parametrize(
    "schedule",
    [
        {"kind": "cosine"},
        {"kind": "linear"},
        {"kind": "constant", "warmup": 0.1},
        {"kind": "inverse_sqrt", "warmup": 0.1},
    ],
)
def test_schedules_that_depend_on_the_length_require_a_limit(schedule: dict[str, Any]) -> None:
    with pytest.raises(
        ValidationError, match=f"{schedule['kind']} schedule .* set max_steps, max_epochs or max_minutes"
    ):
        LoopConfig.model_validate({"schedule": schedule})
    for limit in ("max_steps", "max_epochs", "max_minutes"):
        assert LoopConfig.model_validate({"schedule": schedule, limit: 10}).schedule.kind == schedule["kind"]


def test_unlimited_runs_use_schedules_without_an_end() -> None:
    for schedule in ({"kind": "constant"}, {"kind": "inverse_sqrt", "warmup": 100}, {"kind": "constant", "warmup": 0}):
        assert not LoopConfig.model_validate({"schedule": schedule}).schedule.needs_length
    with pytest.raises(ValidationError, match="this run would never end"):
        LoopConfig(patience=None)


@pytest.mark.parametrize("width", [64, 128, 256])
def test_narrow_models_warm_up_sooner_than_the_papers(width: int) -> None:
    schedule = default_schedule(width, limited=False, averaged=False)
    assert isinstance(schedule, InverseSquareRootConfig)
    assert (schedule.warmup, schedule.peak) == (250, pytest.approx(0.003 * (192 / width) ** 0.5))
    assert default_schedule(width, limited=True, averaged=False).peak == schedule.peak


@pytest.mark.parametrize("width", [512, 1024])
def test_models_as_wide_as_the_papers_use_its_schedule_and_peak(width: int) -> None:
    assert default_schedule(width, limited=False, averaged=False) == InverseSquareRootConfig()
    limited = default_schedule(width, limited=True, averaged=False)
    assert limited.peak == pytest.approx(InverseSquareRootConfig().rate(4000, 0.0, width))


@pytest.mark.parametrize("width", [64, 128, 512, 1024])
def test_a_run_with_a_limit_ends_with_its_rate_at_zero(width: int) -> None:
    schedule = default_schedule(width, limited=True, averaged=False)
    assert isinstance(schedule, CosineConfig)
    assert schedule.rate(250, 0.05, width) == pytest.approx(schedule.peak)
    assert schedule.rate(1000, 1.0, width) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("limited", [False, True])
def test_the_rate_is_constant_with_a_moving_average(limited: bool) -> None:
    assert default_schedule(192, limited, averaged=True) == ConstantConfig(peak=0.003, warmup=250)
    wide = default_schedule(512, limited, averaged=True)
    assert wide == default_schedule(512, limited, averaged=False)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"max_steps": 100}, "constant"),
        ({}, "constant"),
        ({"max_steps": 100, "ema": None}, "cosine"),
        ({"ema": None}, "inverse_sqrt"),
        ({"max_steps": 100, "start": "runs/trained"}, "cosine"),
        ({"max_steps": 100, "schedule": {"kind": "linear"}}, "linear"),
    ],
)
def test_a_new_translator_is_averaged_at_a_constant_rate(given: dict[str, Any], kind: str) -> None:
    schedule = TranslationLoopConfig.model_validate(given).resolve(192).schedule
    assert schedule is not None and schedule.kind == kind


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"max_steps": 100}, "cosine"),
        ({"max_epochs": 3}, "cosine"),
        ({"max_minutes": 0.5}, "cosine"),
        ({"patience": 3}, "inverse_sqrt"),
        ({"max_steps": None}, "inverse_sqrt"),
    ],
)
def test_a_schedule_without_a_kind_has_the_usual_one(given: dict[str, Any], kind: str) -> None:
    loop = LoopConfig.model_validate({"schedule": {"peak": 0.001}, **given})
    assert loop.schedule is not None and (loop.schedule.kind, loop.schedule.peak) == (kind, 0.001)
