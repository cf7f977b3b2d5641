"""Worker processes: order, bounded look-ahead, failures in their place, deaths, and the end of the parent."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from waiting import has_ended, wait_until

from dragoman.base.errors import DataError, ResourceError
from dragoman.data.workers import MAX_LOCAL_TASKS, Workers, parallel_map


def work(task: int) -> tuple[int, int]:
    """A task that is slow for some inputs and fatal for others."""
    if task == 7:
        raise DataError("the seventh")
    if task == 8:
        raise ZeroDivisionError("the eighth")
    if task == 9:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.02 * (task % 3))
    return task * task, os.getpid()


@pytest.mark.parametrize("count", [0, 1, 3])
def test_results_are_in_order_for_any_number_of_processes(count: int) -> None:
    tasks = [0, 1, 2, 3, 4, 5, 6, 10, 11]
    found = list(parallel_map(work, tasks, count))
    assert [square for square, _ in found] == [task * task for task in tasks]
    pids = {pid for _, pid in found}
    assert (pids == {os.getpid()}) if count == 0 else (os.getpid() not in pids)
    assert len(pids) <= max(1, count)


def test_few_tasks_start_no_process() -> None:
    assert {pid for _, pid in parallel_map(work, [1] * MAX_LOCAL_TASKS, 4)} == {os.getpid()}


def test_failures_replace_the_result_of_their_task() -> None:
    found = parallel_map(work, [1, 2, 3, 7, 4], 2)
    assert [square for square, _ in islice(found, 3)] == [1, 4, 9]
    with pytest.raises(DataError, match=r"^the seventh$"):
        next(found)
    with pytest.raises(RuntimeError, match="(?s)in work.*ZeroDivisionError: the eighth"):
        list(parallel_map(work, [1, 2, 3, 8], 2))
    with pytest.raises(ResourceError, match="signal 9"):
        list(parallel_map(work, [1, 2, 3, 9, 4, 5], 2))


def test_tasks_are_not_read_far_ahead_and_leftovers_are_discarded() -> None:
    taken: list[int] = []

    def tasks() -> Iterator[int]:
        for task in (1, 2, 3, 4, 5, 6, 10, 11, 12, 13):
            taken.append(task)
            yield task

    with Workers(work, 2) as workers:
        results = workers.map(tasks())
        assert next(results)[0] == 1
        assert len(taken) <= 5
        results.close()  # type: ignore[attr-defined]
        assert [square for square, _ in workers.map([20, 21, 22])] == [400, 441, 484]


def test_processes_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    script = (
        "import time, pathlib, sys\nfrom dragoman.data.workers import Workers\nworkers = Workers(abs, 2)\n"
        "pids = [p.pid for p in workers._processes.values()]\nassert list(workers.map([-1, -2])) == [1, 2]\n"
        "print(*pids, flush=True)\ntime.sleep(60)\n"
    )
    source = str(Path(sys.modules["dragoman"].__file__ or "").parent.parent)
    environment = {**os.environ, "PYTHONPATH": source}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 2
        parent.kill()
    wait_until(lambda: all(has_ended(pid) for pid in pids))
