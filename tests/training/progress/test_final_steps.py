"""The steps after training share what is left of the time limit, and are left out when it has passed."""

import threading
import time
from types import SimpleNamespace

import pytest

from dragoman.base import cancellation
from dragoman.base.cancellation import Cancellation, Cancelled, check_cancelled
from dragoman.training.progress import final_steps
from dragoman.training.progress.final_steps import FinalSteps

LEFT_OUT = "Left out because train.max_minutes leaves too little time: "


class Machine:
    """A clock that the test sets, and timers that fire when it has reached their time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.timers = 1000.0, []
        monkeypatch.setattr(final_steps, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(cancellation, "Timer", self.timer)

    def timer(self, seconds: float, function: object) -> SimpleNamespace:
        end = self.now + seconds
        self.timers.append((end, function))
        return SimpleNamespace(start=lambda: None, cancel=self.timers.clear)

    def compute(self, seconds: float) -> str:
        """Take some time, and check after every second whether the result is still needed."""
        for _ in range(round(seconds)):
            self.now += 1
            for end, function in list(self.timers):
                if self.now >= end:
                    function()
            check_cancelled()
        return "done"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_each_step_gets_its_fraction_of_what_is_left(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    steps = FinalSteps(1060)
    assert steps.run("int8", lambda: machine.compute(29), fraction=0.5) == "done"
    assert steps.end_of(0.5) == 1029 + 31 / 2
    assert steps.run("the hybrid", lambda: machine.compute(500), fraction=0.5) is None
    assert machine.now == 1045, "half of 31 seconds"
    assert steps.run("the verdict", lambda: machine.compute(500), remedy="evaluate makes it") is None
    assert machine.now == 1060
    assert steps.run("the threshold", lambda: machine.compute(1)) is None
    assert machine.now == 1060, "it has not begun"
    assert FinalSteps(1100).run("int8", lambda: machine.compute(9), fraction=0.5, expected=20) is None
    assert machine.now == 1060, "half of 40 seconds is not enough"
    assert FinalSteps(1102).run("int8", lambda: machine.compute(9), fraction=0.5, expected=20) == "done"
    lines = capsys.readouterr().err.splitlines()
    names = "the hybrid", "the verdict. evaluate makes it", "the threshold", "int8"
    assert lines == [LEFT_OUT + each for each in names]


def test_steps_without_a_limit_are_complete(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    steps = FinalSteps(None)
    assert steps.end_of(0.5) is None
    assert steps.run("int8", lambda: machine.compute(5000), fraction=0.5) == "done"
    assert not capsys.readouterr().err


def test_errors_and_interruptions_pass(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    outer = Cancellation()

    def interrupted() -> None:
        outer.cancel()
        check_cancelled()

    with outer.active(), pytest.raises(Cancelled):
        FinalSteps(2000).run("int8", interrupted)
    with pytest.raises(ZeroDivisionError):
        FinalSteps(2000).run("int8", lambda: 1 / 0)
    assert not capsys.readouterr().err


def test_a_real_step_ends_within_the_limit(capsys: pytest.CaptureFixture[str]) -> None:
    ended = threading.Event()

    def step() -> None:
        try:
            while not ended.wait(0.01):
                check_cancelled()
        finally:
            ended.set()

    started = time.monotonic()
    assert FinalSteps(started + 0.1).run("int8", step) is None
    assert ended.is_set() and 0.1 <= time.monotonic() - started < 5
    assert capsys.readouterr().err == f"{LEFT_OUT}int8\n"
