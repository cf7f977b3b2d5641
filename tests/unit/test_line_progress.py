"""What is told of a work on many lines: how many are done, how fast, how long the rest takes."""

from types import SimpleNamespace

import pytest
from rich.console import Console

from dragoman.base import log
from dragoman.cli import progress
from dragoman.cli.progress import LineProgress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds, in a list of one."""
    now = [100.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_lines_are_told_now_and_then_with_the_time_left(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    asked = []
    with LineProgress(lambda: asked.append(1) or 10_000, done=1000) as told:
        for step in range(1, 9):
            clock[0] += 10
            told.tell(1000 + 250 * step)
            assert len(asked) == (step >= 3)  # all lines are counted only when there is something to tell
    assert capsys.readouterr().err.splitlines() == [
        "1,750 of 10,000 lines · 25 lines/s · 0:05:30 left",
        "2,500 of 10,000 lines · 25 lines/s · 0:05:00 left",
        "3,000 lines are done: 25 lines/s, 0:01:20.",
    ]


def test_short_work_and_what_is_watched_tell_nothing(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with LineProgress(lambda: pytest.fail("not asked")) as told:
        clock[0] += 29
        told.tell(1000)
    with LineProgress(lambda: pytest.fail("not asked"), shown=False) as told:
        clock[0] += 1000
        told.tell(1000)
    assert capsys.readouterr().err == ""


def test_without_an_end_no_time_is_left_and_failures_end_nothing(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    told = LineProgress(lambda: None, done=0)
    clock[0] += 100
    told.tell(50)
    told.__exit__(KeyError, KeyError(), None)
    assert capsys.readouterr().err.splitlines() == ["50 lines · 0.5 lines/s"]


def test_the_first_that_is_told_may_be_what_others_did(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with LineProgress(lambda: 1000) as told:
        for done in (400, 500):
            clock[0] += 20
            told.tell(done, f"{done - 1} kept")
    assert capsys.readouterr().err.splitlines()[0] == "499 kept · 5.0 lines/s · 0:01:40 left"


def test_a_terminal_gets_a_bar(
    clock: list[float], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Console(stderr=True, force_terminal=True, width=120)
    monkeypatch.setattr(progress, "console", terminal)
    monkeypatch.setattr(log, "console", terminal)
    with LineProgress(lambda: 200, done=0) as told:
        for _ in range(3):
            clock[0] += 1
            told.tell(50)
    shown = capsys.readouterr().err
    assert "50 of 200 lines" in shown and "left" in shown and "lines are done" in shown
