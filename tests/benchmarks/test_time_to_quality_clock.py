"""benchmarks/time_to_quality: a clock for updates only, and its records for a run that is killed."""

import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from benchmark_modules import benchmark_modules
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.fixture(scope="module")
def quality() -> Iterator[SimpleNamespace]:
    with benchmark_modules(["time_to_quality"], ("ledger", "recorder")) as modules:
        yield modules


class Clock:
    """Two clocks that are set by hand; the CPU's is twice as fast, as on two cores."""

    def __init__(self, quality: SimpleNamespace) -> None:
        self.now = 1000.0
        self.both = quality.recorder.Clocks(lambda: self.now, lambda: 2 * self.now)


def recorder(quality: SimpleNamespace, folder: Path, clock: Clock, every: float = 1.0, limit: float = 1e9) -> Any:
    return quality.recorder.Recorder(folder, every, limit, clock.both)


def never() -> list[str]:
    raise AssertionError("there was nothing to translate")


def test_the_grid_of_points_does_not_depend_on_the_query(quality: SimpleNamespace) -> None:
    follow = quality.recorder.next_point
    grid = [follow(0.0, 0.5)]
    while grid[-1] < 50:
        grid.append(follow(grid[-1], 0.5))
    assert grid[:10] == [0.5 * step for step in range(1, 11)]
    assert grid[11] == pytest.approx(1.1 * grid[10])
    for minutes in (0.49, 0.51, 7.3, 44.0):
        assert follow(minutes, 0.5) == next(point for point in grid if point > minutes)


def test_pauses_do_not_count_as_time_of_updates(quality: SimpleNamespace, tmp_path: Path) -> None:
    clock = Clock(quality)
    run = recorder(quality, tmp_path, clock)
    run.begin(0, never)
    clock.now += 50  # a program that starts
    run.start()
    clock.now += 30
    run.step(100)
    with run.paused(own=True):
        clock.now += 7
        with run.paused():
            clock.now += 3
    clock.now += 10
    run.step(20)
    run.mark()
    assert run.minutes == pytest.approx(40 / 60)
    (mark,) = run.ledger.marks()
    assert (mark.updates, mark.tokens, mark.sitting) == (2, 120, 1)
    assert (mark.seconds, mark.cpu_seconds, mark.own_seconds) == pytest.approx((40, 80, 10))


def test_a_point_is_due_by_the_grid_and_at_the_limit(quality: SimpleNamespace, tmp_path: Path) -> None:
    clock = Clock(quality)
    run = recorder(quality, tmp_path, clock, every=1.0, limit=2.5)
    run.begin(0, never)
    run.start()
    seen = []
    saved: list[int] = []
    while not run.over:
        clock.now += 25
        run.step(1)
        if run.due:
            seen.append(clock.now - 1000)
            run.point(lambda: saved.append(run.updates), lambda: ["Ein\u2028Hund", ""])
    assert seen == [75, 125, 150]
    assert saved == [3, 5, 6]
    assert run.ledger.translations(5).read_text("utf-8") == "Ein Hund\n\n"


def test_translating_does_not_affect_the_random_numbers_of_training(quality: SimpleNamespace, tmp_path: Path) -> None:
    def translate() -> list[str]:
        return [f"{random.random()} {torch.rand(3)}"]

    def draws(folder: Path, points: bool) -> tuple[Any, ...]:
        run = recorder(quality, folder, Clock(quality))
        run.begin(0, never)
        torch.manual_seed(1)
        random.seed(1)
        run.start()
        if points:
            run.point(lambda: None, translate)
        return random.random(), torch.rand(2).tolist()

    assert draws(tmp_path / "with", True) == draws(tmp_path / "without", False)


def test_a_resumed_run_adds_the_translations_that_a_kill_prevented(quality: SimpleNamespace, tmp_path: Path) -> None:
    clock = Clock(quality)
    first = recorder(quality, tmp_path, clock)
    first.begin(0, never)
    first.start()
    clock.now += 120
    first.step(10)

    def killed() -> list[str]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        first.point(lambda: None, killed)
    second = recorder(quality, tmp_path, clock)
    second.begin(1, lambda: ["da"])
    assert second.ledger.translations(1).read_text("utf-8") == "da\n"
    assert not second.due  # the point of minute 2 exists
    recorder(quality, tmp_path, clock).begin(1, never)  # and is not created again


Event = tuple[str, int]
EVENTS = st.lists(st.tuples(st.sampled_from(("update", "own", "save", "kill")), st.integers(1, 100)), max_size=40)


@given(events=EVENTS)
@settings(max_examples=60, deadline=None)
def test_the_time_of_a_run_excludes_updates_lost_by_kills(
    quality: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory, events: list[Event]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    clock = Clock(quality)
    run = recorder(quality, folder, clock)
    run.begin(0, never)
    run.start()
    made: list[int] = []  # seconds of each update that counts
    own = saved = 0
    marked = {0: 0}  # the value of `own` at the mark of each number of updates
    for kind, seconds in events:
        if kind == "update":
            clock.now += seconds
            run.step(1)
            made.append(seconds)
        elif kind == "own":
            with run.paused(own=True):
                clock.now += seconds
            own += seconds
        elif kind == "save":
            run.mark()
            marked[len(made)] = own
            if seconds % 3:  # otherwise a kill comes before the checkpoint is in place
                saved = len(made)
        else:
            clock.now += seconds
            del made[saved:]
            own = marked[saved]
            run = recorder(quality, folder, clock)
            run.begin(saved, never)
            clock.now += 5
            run.start()
    run.mark()
    last = run.ledger.marks()[-1]
    assert last.updates == last.tokens == len(made)
    assert last.seconds == pytest.approx(sum(made))
    assert last.cpu_seconds == pytest.approx(2 * sum(made))
    assert last.own_seconds == pytest.approx(own)


def test_the_ledger_returns_to_a_checkpoint_and_forgets_later_marks(quality: SimpleNamespace, tmp_path: Path) -> None:
    ledger, mark = quality.ledger.Ledger(tmp_path), quality.ledger.Mark
    for updates in (10, 20, 30):
        ledger.add(mark(updates, seconds=float(updates), point=updates != 10))
        ledger.write_translations(updates, ["x"])
    ledger.add(mark(20, seconds=21.0))
    with (tmp_path / "marks.jsonl").open("a") as file:
        file.write('{"updates": 40, "tok')  # a kill in the middle of a line
    assert [each.updates for each in ledger.marks()] == [10, 20, 30]
    assert ledger.go_back(20) == mark(20, seconds=21.0, point=True)
    assert [each.updates for each in ledger.marks()] == [10, 20]
    assert sorted(path.name for path in (tmp_path / "translations").iterdir()) == ["00000010.txt", "00000020.txt"]
    with pytest.raises(quality.ledger.LedgerError, match="no mark of update 15"):
        ledger.go_back(15)
    assert ledger.go_back(0) == mark()
    assert ledger.marks() == []
