"""Short requests go first: documents take neither the event loop nor the thread of a model, and give way in theirs."""

import asyncio
import os
import threading
import time
from typing import Any

import httpx
import pytest
from benchmark_modules import benchmark_modules
from scripted_server import asked, served, shouting

from dragoman.addons.documents.expected_spans import ExpectedSpans
from dragoman.addons.serving import server
from dragoman.addons.serving.config import LimitsConfig
from dragoman.addons.serving.documents.processes import DocumentProcesses
from dragoman.base.cancellation import Cancellation
from dragoman.text.sentences.splitter import Splitter

FIELDS = {"source": "en", "target": "de"}


@pytest.fixture
def inspectors(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the threads that compare hypotheses with their sources."""
    found = set[str]()
    are_in = ExpectedSpans.are_in

    def recorded(self: ExpectedSpans, source: str, translation: str) -> bool:
        found.add(threading.current_thread().name)
        return are_in(self, source, translation)

    monkeypatch.setattr(ExpectedSpans, "are_in", recorded)
    return found


@pytest.mark.parametrize("cache_entries", [0, 1000])  # cached sentences are delivered by the event loop
def test_the_hypotheses_of_a_document_are_inspected_in_a_thread_for_documents(
    cache_entries: int, inspectors: set[str]
) -> None:
    text = "".join(f"A dog runs {number % 7} km.\n" for number in range(100))
    with served({"en-de": shouting}, queue={"cache_entries": cache_entries}) as service:
        answer = asked(
            service, lambda client: client.post("/translate_file", files={"file": ("a.txt", text)}, data=FIELDS)
        )
    assert answer.status_code == 200
    assert inspectors == {"preparing documents"}


def test_streamed_sentences_are_inspected_before_they_are_sent(inspectors: set[str]) -> None:
    with served({"en-de": shouting}) as service:
        fields = {"text": "A dog runs 7 km. A cat runs.", **FIELDS, "stream": True}
        answer = asked(service, lambda client: client.post("/v1/translate", json=fields))
    assert answer.status_code == 200 and "7 KM" in answer.text and "translating" in inspectors


def test_processes_of_documents_have_a_lower_priority_than_the_server() -> None:
    pool = DocumentProcesses(LimitsConfig())
    try:
        with pool.open("html", 100_000) as format:
            format.parse("<p>A dog.")
            worker: int = format._worker[0]  # type: ignore[attr-defined]
            for pid in (worker, pool._process.pid):  # type: ignore[union-attr]
                assert os.getpriority(os.PRIO_PROCESS, pid) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)
                if hasattr(os, "SCHED_BATCH"):
                    assert os.sched_getscheduler(pid) == os.SCHED_BATCH
    finally:
        pool.close()


def test_a_sentence_of_any_length_gives_way_between_its_parts() -> None:
    trimmed, checks = 0, []

    def trim(text: str) -> tuple[int, int]:
        nonlocal trimmed
        trimmed += 1
        return 0, len(text)

    splitter = Splitter("en", lambda text: len(text) <= 50, trim)
    with Cancellation(lambda: checks.append(trimmed)).active():
        parts = list(splitter.sentences("word " * 2000))
    assert len(parts) >= 200
    assert {*range(1, len(parts))} <= {*checks}, "there is a check after each part"


@pytest.mark.slow
def test_the_event_loop_is_not_blocked_by_hostile_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor time of each callback of the loop is bounded. Other programs on the machine do not affect it."""
    longest = 0.0
    run = asyncio.Handle._run  # type: ignore[attr-defined]

    def timed(handle: Any) -> None:
        nonlocal longest
        begin = time.thread_time()
        run(handle)
        longest = max(longest, time.thread_time() - begin)

    with benchmark_modules(["."], ["hostile_kinds"]) as modules, served({"en-de": shouting}) as service:
        files = [
            (name, (start + piece * (200_000 // len(piece)) + end).encode())
            for name, start, piece, end in modules.hostile_kinds.EXPRESSIONS.values()
        ]
        files.append(("book.txt", b"A dog runs 7 km in the garden of the neighbours.\n" * 4000))

        async def work(client: httpx.AsyncClient) -> list[httpx.Response]:
            await client.post("/translate", json={"q": "a dog", **FIELDS})
            monkeypatch.setattr(asyncio.Handle, "_run", timed)
            answers = [client.post("/translate_file", files={"file": each}, data=FIELDS) for each in files]
            return await asyncio.gather(*answers)

        answers = asked(service, work)
        monkeypatch.undo()
    assert {each.status_code for each in answers} <= {200, 503}, [each.text for each in answers]
    assert longest < 0.1, longest


def test_returning_memory_takes_at_most_a_small_fraction_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """All threads wait while the garbage collector visits the objects of hostile documents."""
    pauses: list[float] = []
    durations = iter([0.001, 0.2, 0.001])
    sizes = iter(range(0, 10**12, 10**9))

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) > 3:
            raise asyncio.CancelledError

    monkeypatch.setattr(asyncio, "sleep", sleep)
    monkeypatch.setattr(server, "resident_memory", lambda: next(sizes))
    monkeypatch.setattr(server, "_collect_and_release", lambda: next(durations))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(server._release_memory())
    assert pauses == [5, 5, 40, 5]
