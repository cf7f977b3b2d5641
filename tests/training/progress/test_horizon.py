"""The completed fraction of a run at a step: fitted to the clock, recorded, and adapted to new limits."""

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from dragoman.training.config import LoopConfig
from dragoman.training.machine.journal import Journal
from dragoman.training.optimisers.schedule import CosineConfig
from dragoman.training.progress.horizon import Horizon


def config(**limits: Any) -> LoopConfig:
    return LoopConfig.model_validate(limits)


def shares(horizon: Horizon, first: int, last: int) -> list[float]:
    return [horizon.progress_at(step) for step in range(first, last + 1)]


@pytest.mark.parametrize(
    ("limits", "end"),
    [
        ({"max_steps": 100}, 100),
        ({"max_epochs": 3}, 51),
        ({"max_steps": 100, "max_epochs": 3}, 51),
        ({"max_steps": 40, "max_epochs": 3, "max_minutes": 1}, 40),
        ({}, None),
    ],
)
def test_limits_in_steps_are_known_at_once(limits: dict[str, int], end: int | None, tmp_path: Path) -> None:
    horizon = Horizon.initial(config(**limits), steps_per_epoch=17)
    assert horizon.end == end
    if end is None:
        assert horizon.progress_at(10**6) == 0
    else:
        assert horizon.progress_at(end) == 1
        assert horizon.progress_at(end + 1) == 1
        assert horizon.progress_at(end // 2) == pytest.approx(end // 2 / end)


def test_a_run_without_a_clock_is_never_fitted(tmp_path: Path) -> None:
    decisions = Journal(tmp_path / "journal")
    horizon = Horizon.initial(config(max_steps=100), 17)
    assert horizon.refit(config(max_steps=100), 17, 20, 3.0, decisions) == horizon
    assert not decisions.path.exists()


def test_minutes_become_steps_by_the_speed_so_far(tmp_path: Path) -> None:
    decisions = Journal(tmp_path / "journal")
    limits = config(max_minutes=1)
    first = Horizon.initial(limits, 17)
    assert first.refit(limits, 17, 4, 2.0, decisions) == first
    fitted = first.refit(limits, 17, 20, 2.0, decisions)  # ten steps per second, 58 seconds left
    assert fitted.end == 600
    assert fitted.progress_at(600) == 1
    assert fitted.refit(limits, 17, 48, 9.0, decisions) == fitted, "a twentieth of the rest is not done"
    slower = fitted.refit(
        limits, 17, 200, 38.0, decisions
    )  # recently five per second, 22 seconds left: (0.1 + 0.2) / 2 per step
    assert slower.end == 200 + 146
    assert slower.progress_at(200) == pytest.approx(fitted.progress_at(200))


def test_progress_rises_steadily_over_all_fits_to_the_end(tmp_path: Path) -> None:
    decisions = Journal(tmp_path / "journal")
    limits = config(max_minutes=1)
    horizon = Horizon.initial(limits, 17)
    seen = [0.0]
    step, seconds = 0, 0.0
    while step < (horizon.end or 0) and seconds < 60:
        step += 1
        seconds += 0.05 if step < 300 else 0.06
        seen.append(horizon.progress_at(step))
        horizon = horizon.refit(limits, 17, step, seconds, decisions)
    assert seen == sorted(seen)
    assert seen[-1] == 1
    assert 1040 < step <= 1051


SPEEDS: dict[str, tuple[float, Callable[[int, float], float], float]] = {
    "even": (30, lambda step, share: 0.3, 0),
    "with validations": (30, lambda step, share: 0.3, 20),
    "slower from the middle": (30, lambda step, share: 0.3 if share < 0.5 else 0.6, 0),
    "slower near the end": (30, lambda step, share: 0.3 if share < 0.9 else 0.6, 0),
    "faster from the middle": (30, lambda step, share: 0.6 if share < 0.5 else 0.3, 0),
    "faster near the end": (30, lambda step, share: 0.6 if share < 0.9 else 0.3, 0),
    "slow to begin with": (10, lambda step, share: 6.0 if step <= 20 else 1.0, 0),
    "long steps, longer from the middle": (10, lambda step, share: 3.0 if share < 0.5 else 4.5, 0),
    "ten steps": (0.5, lambda step, share: 3.0, 0),
    "up and down": (30, lambda step, share: 0.3 * (1.5 + math.sin(40 * share)), 10),
}


@pytest.mark.parametrize("name", SPEEDS)
def test_a_run_of_changing_speed_ends_in_time_with_its_schedule_done(tmp_path: Path, name: str) -> None:
    """Simulate a run with the loop's rules. Durations of steps, and of validations every 500 steps, in seconds."""
    minutes, seconds_of, pause = SPEEDS[name]
    limits, decisions = config(max_minutes=minutes), Journal(tmp_path / "journal", owned=False)
    horizon = Horizon.initial(limits, 17)
    step, seconds = 0, 0.0
    while seconds < 60 * minutes and (step == 0 or step < (horizon.end or 0)):
        step += 1
        done = horizon.progress_at(step)
        seconds += seconds_of(step, seconds / 60 / minutes)
        horizon = horizon.refit(limits, 17, step, seconds, decisions)
        seconds += pause if step % 500 == 0 else 0
    assert 0.97 < seconds / 60 / minutes < 1.03
    cosine = CosineConfig(peak=1.0, warmup=0)
    assert cosine.rate(step, done, 256) < 0.01


def test_a_fit_is_repeated_and_not_made_again(tmp_path: Path) -> None:
    limits = config(max_minutes=1)
    first = Horizon.initial(limits, 17)
    fitted = first.refit(limits, 17, 20, 2.0, Journal(tmp_path / "journal"))
    assert Horizon(**json.loads(json.dumps(asdict(fitted)))) == fitted, "a snapshot holds it"
    again = first.refit(limits, 17, 20, 50.0, Journal(tmp_path / "journal"))
    assert again == fitted
    elsewhere = first.refit(limits, 17, 20, 50.0, Journal(tmp_path / "other"))
    assert elsewhere != fitted


def test_a_limit_in_steps_stays_the_limit(tmp_path: Path) -> None:
    limits = config(max_minutes=1, max_steps=400)
    first = Horizon.initial(limits, 17)
    assert first.refit(limits, 17, 20, 2.0, Journal(tmp_path / "fast")).end == 400
    assert first.refit(limits, 17, 20, 20.0, Journal(tmp_path / "slow")).end == 60


def test_a_run_without_time_left_ends_now(tmp_path: Path) -> None:
    limits = config(max_minutes=0.01)
    fitted = Horizon.initial(limits, 17).refit(limits, 17, 20, 5.0, Journal(tmp_path / "journal"))
    assert fitted.end == 20
    assert shares(fitted, 20, 22) == [1, 1, 1]


def test_new_limits_stretch_the_rest_of_a_run() -> None:
    longer = config(max_steps=200)
    assert Horizon.initial(longer, 17).after_change(longer, 100, 50.0).progress_at(100) == 0.5
    minutes = config(max_minutes=2)  # half a second per step: 240 steps in total
    joined = Horizon.initial(minutes, 17).after_change(minutes, 100, 50.0)
    assert joined.end == 240
    assert joined.progress_at(100) == pytest.approx(100 / 240)
    assert joined.progress_at(240) == 1
    both = config(max_minutes=2, max_steps=150)
    assert Horizon.initial(both, 17).after_change(both, 100, 50.0).end == 150


def test_new_minutes_before_the_first_step_leave_everything_to_do() -> None:
    """A snapshot at step 0 took some seconds, which say nothing about the speed."""
    minutes = config(max_minutes=2)
    joined = Horizon.initial(minutes, 17).after_change(minutes, 0, 0.3)
    assert joined.progress_at(0) == 0
    assert joined.progress_at(20) < 0.1


def test_minutes_already_used_up_leave_nothing_to_do() -> None:
    minutes = config(max_minutes=0.5)
    joined = Horizon.initial(minutes, 17).after_change(minutes, 100, 50.0)
    assert joined.progress_at(100) == 1
