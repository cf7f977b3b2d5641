"""A time limit counts everything from the start of the command to its end, summed over resumed runs."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dragoman.training.config import LoopConfig
from dragoman.training.machine.journal import Journal
from dragoman.training.progress.horizon import Horizon
from dragoman.training.progress.progress import RunProgress
from dragoman.training.run import run_clock
from dragoman.training.run.run_clock import RunClock
from dragoman.training.run.session import Session


class Machine:
    """A clock that the test sets, and the rest of a run of 5 minutes."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> None:
        self.now = 1000.0
        monkeypatch.setattr(run_clock, "time", SimpleNamespace(monotonic=lambda: self.now))
        self.folder, self.config = folder, LoopConfig.model_validate({"max_minutes": 5, **settings})

    def clock(self, preparation: float, progress: RunProgress | None = None) -> RunClock:
        session = SimpleNamespace(
            config=self.config,
            ranks=SimpleNamespace(broadcast=lambda value: value, is_main=True),
            job=SimpleNamespace(measuring_seconds=lambda limit, validation: 0.05 * limit, is_estimated=False),
            journal=Journal(self.folder / "journal"),
        )
        begun, self.now = self.now, self.now + preparation
        return RunClock(cast(Session, session), begun, progress or RunProgress(Horizon.initial(self.config, 17)))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch, validate_every=100, average={"count": 1})


def test_training_ends_before_the_limit_by_the_time_of_the_rest(machine: Machine) -> None:
    clock = machine.clock(preparation=60)
    assert clock.deadline == 1295, "5 seconds before the limit"
    clock.note_validation(40)
    progress = clock.progress
    progress.horizon = Horizon(0, 0.0, None)
    for seconds, reason in ((184, None), (185, "train.max_minutes=5 reached")):  # 300 - 60 - 40 - 15
        progress.step, progress.seconds = progress.step + 1, seconds
        assert clock.limit_reached() == reason
    machine.now += 185 + 55
    assert clock.describe() == "5.0 minutes (preparation 1.0, training 3.1, the final model 0.9)"


def test_a_validation_that_would_end_too_late_is_left_out_also_after_resumption(machine: Machine) -> None:
    clock = machine.clock(preparation=60)
    clock.note_validation(40)
    for step, seconds, due in ((99, 1, False), (100, 145, True), (200, 146, False)):
        clock.progress.step, clock.progress.seconds = step, seconds
        assert clock.is_validation_due() is due
    again = machine.clock(preparation=0)
    again.progress.step, again.progress.seconds = 200, 1
    assert not again.is_validation_due(), "the decision is in the journal"


def test_a_resumed_run_has_the_rest_of_the_limit(machine: Machine) -> None:
    first = machine.clock(preparation=60)
    first.progress.seconds = 50
    stored = RunProgress.from_json(first.progress.to_json())
    machine.now += 10_000
    resumed = machine.clock(preparation=20)
    resumed.restore(stored)
    assert resumed.progress.prepared == 80
    assert resumed.deadline == machine.now + 300 - 80 - 50 - 5
    assert resumed.seconds() == 50


def test_writing_is_reserved_and_the_mean_is_left_out_when_there_is_no_time(machine: Machine) -> None:
    clock = machine.clock(preparation=60)
    clock.note_validation(40)
    clock.note_snapshot(2)
    budget = clock.budget
    assert budget is not None and budget.for_updates == 300 - 60 - 40 - 15 - 4 * 2
    machine.now = 1255
    assert clock.leaves_validation()
    machine.now = 1256
    assert not clock.leaves_validation()


def test_the_first_run_of_a_command_begins_with_the_command() -> None:
    with run_clock.started_at(5.0):
        assert run_clock.take_start() == 5.0
        assert run_clock.take_start() > 5.0, "a second seed"
    assert run_clock.take_start() != 5.0


def test_a_run_without_a_time_limit_has_no_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Machine(tmp_path, monkeypatch, max_minutes=None, max_steps=3, validate_every=2).clock(60)
    assert clock.deadline is None and not clock.requires_probe() and clock.update_limits is clock._config
    clock.progress.step = 2
    assert clock.is_validation_due() and clock.limit_reached() is None
