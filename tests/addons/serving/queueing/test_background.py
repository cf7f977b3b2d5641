"""Background threads give way to short requests, and only to them."""

import threading
import time

import pytest
from waiting import PATIENCE

from dragoman.addons.serving.queueing import background
from dragoman.addons.serving.queueing.background import Background
from dragoman.base.cancellation import Cancellation, Cancelled, check_cancelled


def work(paused: Background, processor_seconds: float) -> float:
    """Compute for a while, and return how long it took by the clock."""
    began, end = time.monotonic(), time.thread_time() + processor_seconds
    with Cancellation(paused.pause).active(), paused.thread():
        while time.thread_time() < end:
            check_cancelled()
    return time.monotonic() - began


def test_threads_run_for_their_share_while_a_short_request_is_in_progress() -> None:
    paused = Background(cores=1)
    with paused.short_request():
        assert work(paused, 0.05) > 0.05 / background._FRACTION * 0.7
        took: list[float] = []
        threads = [threading.Thread(target=lambda: took.append(work(paused, 0.03))) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert max(took) > 2 * 0.03 / background._FRACTION * 0.7, "the threads share it"


def test_threads_do_not_pause_without_short_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    paused = Background(cores=1)
    with paused.short_request():
        pass
    monkeypatch.setattr(paused._no_short_requests, "wait", lambda seconds: pytest.fail("paused"))
    work(paused, 0.02)


def test_a_pause_ends_with_the_last_short_request() -> None:
    paused, began, ended = Background(cores=1), threading.Event(), threading.Event()
    paused._fraction = 1e-9  # so that a pause would never end by itself

    def run() -> None:
        began.set()
        work(paused, 0.01)
        ended.set()

    with paused.short_request():
        with paused.short_request():
            threading.Thread(target=run, daemon=True).start()
            assert began.wait(PATIENCE)
        assert not ended.wait(0.2), "another short request is in progress"
    assert ended.wait(PATIENCE)


def test_compiled_code_is_repaid_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    paused = Background(cores=1)
    with paused.short_request(), paused.thread():
        began, end = time.monotonic(), time.thread_time() + 0.03
        while time.thread_time() < end:
            pass
        paused.repay()
        assert time.monotonic() - began > 0.03 / background._FRACTION * 0.7
    monkeypatch.setattr(background, "_MOST_DEBT", PATIENCE)
    with paused.short_request(), paused.thread():
        began, end = time.monotonic(), time.thread_time() + 0.01
        while time.thread_time() < end:
            pass
        threading.Timer(0.02, lambda: paused._no_short_requests.set()).start()
        paused._fraction = 1e-9
        paused.repay()
        assert time.monotonic() - began < PATIENCE, "the last short request ends the pause"


def test_a_pausing_computation_can_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    paused = Background(cores=1)
    paused._fraction = 1e-9
    cancellation, pausing, ended = Cancellation(paused.pause), threading.Event(), threading.Event()
    wait = paused._no_short_requests.wait

    def noting(seconds: float) -> bool:
        pausing.set()
        return wait(seconds)

    monkeypatch.setattr(paused._no_short_requests, "wait", noting)

    def run() -> None:
        def endless() -> None:
            while True:
                check_cancelled()

        with cancellation.active(), paused.thread(), pytest.raises(Cancelled):
            endless()
        ended.set()

    with paused.short_request():
        threading.Thread(target=run).start()
        assert pausing.wait(PATIENCE)
        cancellation.cancel()
        assert ended.wait(PATIENCE)
