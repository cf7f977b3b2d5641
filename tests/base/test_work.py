"""Progress reports: completed work, speed and remaining time, and where they are shown."""

import sys
import threading
import time
from collections.abc import Iterator
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from waiting import wait_until

from dragoman.base import log, progress
from dragoman.base.log import info, quietly, warn
from dragoman.base.progress import Progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock in seconds, as a list of one."""
    now = [100.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


class Screen(StringIO):
    """A terminal's text, including the codes that move the cursor."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Screen]:
    """Make stderr a terminal 120 columns wide, and check that no thread remains."""
    screen = Screen()
    console = Console(file=screen, force_terminal=True, width=120, soft_wrap=True, highlight=False)
    for module in (log, progress):
        monkeypatch.setattr(module, "console", console)
    monkeypatch.setattr(progress.Terminal, "delay", 0.0)
    monkeypatch.setattr(progress.Terminal, "_REDRAW_INTERVAL", 0.01)
    yield screen
    assert not any(thread.name == "progress" for thread in threading.enumerate())


def appears(screen: Screen, text: str) -> None:
    """Wait until the terminal has shown it."""
    wait_until(lambda: text in screen.getvalue(), f"{text!r} is never shown")


def last_lines(screen: Screen) -> list[str]:
    """Return the lines that remain on the terminal, without erased lines, which end in a code."""
    return [line for line in screen.getvalue().split("\n") if line and "\x1b" not in line]


def test_lines_are_printed_occasionally_with_the_remaining_time(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []
    with Progress("Translating", "lines", lambda: asked.append(1) or 10_000, done=1000, closes=True) as told:
        for step in range(1, 9):
            clock[0] += 10
            told.update(1000 + 250 * step)
            assert len(asked) == (step >= 3)  # all lines are counted only when there is something to report
    assert capsys.readouterr().err.splitlines() == [
        "Translating: 1,750 of 10,000 lines · 25 lines/s · 0:05:30 left",
        "Translating: 2,500 of 10,000 lines · 25 lines/s · 0:05:00 left",
        "3,000 lines are done: 25 lines/s, 0:01:20.",
    ]


def test_short_tasks_print_nothing(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("Translating", "lines", lambda: pytest.fail("not asked"), closes=True) as told:
        clock[0] += 29
        told.update(1000)
    with Progress("Translating", "lines", lambda: pytest.fail("not asked"), shown=False, closes=True) as told:
        clock[0] += 1000
        told.update(1000)
    with Progress("Training", lines=False) as told:
        clock[0] += 1000
        told.update(1000, "step 1,000")
    assert capsys.readouterr().err == ""


def test_without_a_total_no_remaining_time_is_shown(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    def read() -> None:
        with Progress("Reading", "lines", lambda: None, closes=True) as told:
            clock[0] += 100
            told.update(50)
            raise KeyError

    with pytest.raises(KeyError):
        read()
    assert capsys.readouterr().err.splitlines() == ["Reading: 50 lines · 0.5 lines/s"]


def test_the_first_update_may_count_for_earlier_processes(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with Progress("Translating", "lines", 1000, done=None) as told:
        for done in (400, 500):
            clock[0] += 20
            told.update(done, f"{done - 1} kept")
    assert capsys.readouterr().err.splitlines()[0] == "Translating: 499 kept · 5.0 lines/s · 0:01:40 left"


def test_the_first_units_promise_no_remaining_time(clock: list[float]) -> None:
    told = Progress("Translating", "lines", 1000)
    told.done, now = 1, clock[0]
    assert told.text(now + 5) == "Translating: 1 of 1,000 lines · 0.2 lines/s"
    assert told.text(now + 20).endswith(" · 5:33:00 left")
    told.done = 20
    assert told.text(now + 5).endswith(" · 0:04:05 left")


def test_quietly_suppresses_messages_except_warnings(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with quietly():
        with quietly(False), Progress("Translating", "lines", 100, closes=True) as told:
            clock[0] += 100
            told.update(50)
            info("on the way")
        warn("something is missing")
    with quietly(False):
        info("loud again")
    assert capsys.readouterr().err.splitlines() == ["warning: something is missing", "loud again"]


def test_other_threads_show_nothing(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    def other() -> None:
        with Progress("Translating", "lines", 100) as told:
            clock[0] += 100
            told.update(50)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert capsys.readouterr().err == ""


def test_a_terminal_shows_one_line_for_the_innermost_task(screen: Screen) -> None:
    with Progress("Training", total=200) as outer:
        outer.update(50, "step 50 of 200")
        appears(screen, "Training: step 50 of 200")
        with Progress("Validating", "sentences", 8) as inner:
            inner.update(2)
            appears(screen, "Validating: 2 of 8 sentences")
            shown = screen.getvalue()
            assert "left" in shown and "━" in shown  # the bar
        before = len(screen.getvalue())
        outer.update(60, "step 60 of 200")
        while "step 60" not in screen.getvalue()[before:]:
            time.sleep(0.01)
        assert "Validating" not in screen.getvalue()[before:].partition("step 60")[2]
    assert last_lines(screen) == []
    assert "\x1b[?25l" not in screen.getvalue().rpartition("\x1b[?25h")[2]  # the cursor is there


def test_messages_are_printed_above_the_line(screen: Screen) -> None:
    with Progress("Translating", "lines", 10) as told:
        told.update(5)
        appears(screen, "5 of 10 lines")
        info("a message")
        warn("a warning")
        print("from elsewhere", file=sys.stderr)
    text = screen.getvalue()
    for message in ("a message\n", "a warning\n", "from elsewhere\n"):
        assert message in text
        assert "5 of 10 lines" in text.partition(message)[2]  # the line is redrawn below


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_the_line_is_removed_however_the_work_ends(screen: Screen, error: type[BaseException]) -> None:
    def translate() -> None:
        with Progress("Outer"), Progress("Translating", "lines", 10, closes=True) as told:
            told.update(5)
            appears(screen, "5 of 10 lines")
            raise error

    with pytest.raises(error):
        translate()
    assert last_lines(screen) == []
    assert sys.stderr is not None and "FileProxy" not in type(sys.stderr).__name__


def test_work_that_was_never_closed_does_not_keep_the_line(screen: Screen) -> None:
    with Progress("Outer"):
        Progress("Translating", "lines", 10).__enter__()
        appears(screen, "Translating: 0 of 10 lines")
    assert not progress._TERMINAL._open


def test_narrow_terminals_have_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Progress("Translating", "lines", 1000)
    told.update(500)
    for width, bar in ((120, True), (80, True), (66, False), (30, False)):
        console = Console(width=width, record=True, file=StringIO())
        monkeypatch.setattr(progress, "console", console)
        console.print(progress.Terminal()._line(told, told.opened + 3))
        (line,) = console.export_text().splitlines()
        assert ("━" in line) == bar and len(line) <= width and "Translating: 500 of 1," in line


def test_reporting_costs_almost_nothing() -> None:
    with Progress("Translating", "lines", 10**6) as told:
        begun = time.process_time()
        for done in range(20_000):
            told.update(done)
        assert (time.process_time() - begun) / 20_000 < 20e-6  # about 0.3 µs; an update of training takes 10,000


def test_a_notebook_output_is_updated(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    """As IPython specifies: display(…, display_id=True) returns a handle whose update replaces the output."""
    outputs: list[list[str]] = []
    bars: list[str] = []

    class Handle:
        def update(self, content: dict[str, str], raw: bool) -> None:
            outputs[-1].append(content["text/plain"])
            bars.append(content.get("text/html", ""))

    def show(content: dict[str, str], raw: bool, display_id: bool) -> Any:
        outputs.append([content["text/plain"]])
        bars.append(content["text/html"])
        return Handle()

    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=None))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=show))
    with Progress("Translating", "lines", 100) as told:
        assert told.live
        for done in (10, 11, 20):
            clock[0] += 0.4
            told.update(done)
    with Progress("Short", "lines"):
        pass
    assert outputs == [["Translating: 11 of 100 lines · 14 lines/s · 0:00:06 left", ""]]
    assert bars == [f'<progress value="11" max="100"></progress> {outputs[0][0]}', ""]


def test_a_narrow_terminal_omits_whole_parts(screen: Screen) -> None:
    progress.console.width = 50
    with Progress("Training", total=200) as told:
        told.update(50, "step 50 of 200 · loss 5.548 · 0:02:29 left · epoch 1")
        appears(screen, "Training: step 50 of 200 · loss 5.548 ")
        shown = screen.getvalue()
    assert "0:02" not in shown and "…" not in shown


def test_a_terminal_wraps_messages_between_words(screen: Screen) -> None:
    log.console.width = 20
    info("one message of several words")
    assert [line.strip() for line in screen.getvalue().splitlines()] == ["one message of", "several words"]
