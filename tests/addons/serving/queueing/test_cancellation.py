"""Work without a waiting client is abandoned, and work that is too expensive is rejected before it begins."""

import asyncio
import gc
import threading
import time
from collections.abc import Iterator, Sequence

import httpx
import pytest
from repository import ROOT
from scripted_server import asked, posted, served, shouting
from waiting import PATIENCE, eventually

from dragoman.addons.documents.formats.html.tokenizer import tokenize
from dragoman.addons.documents.formats.union import get_format
from dragoman.addons.documents.sentences import Sentence
from dragoman.addons.serving.config import LimitsConfig, QueueConfig
from dragoman.addons.serving.errors import Overloaded
from dragoman.addons.serving.queueing.background import Background
from dragoman.addons.serving.queueing.batcher import Batcher
from dragoman.addons.serving.queueing.fair_executor import FairExecutor
from dragoman.addons.serving.queueing.line_queue import Hypotheses, Ticket
from dragoman.addons.serving.service.step_translation import TimeLimit
from dragoman.base.cancellation import Cancellation, Cancelled, check_cancelled, until_cancelled
from dragoman.inference.control.control import Control
from dragoman.inference.translation.request import Request, TextRequest
from dragoman.inference.translation.result import Translation
from dragoman.text.tokenizer import Tokenizer


def test_a_cancellation_reaches_loops_and_callbacks() -> None:
    cancellation, called = Cancellation(), list[str]()
    check_cancelled()  # outside of any computation that can be cancelled
    with cancellation.active():
        assert list(until_cancelled("ab")) == ["a", "b"]
        with cancellation.callback(lambda: called.append("ended")):
            pass
        with cancellation.callback(lambda: called.append("running")):
            cancellation.cancel()
            cancellation.cancel()
        with cancellation.callback(lambda: called.append("late")):
            pass
        assert called == ["running", "late"]
        with pytest.raises(Cancelled):
            next(until_cancelled("ab"))
    check_cancelled()
    assert not issubclass(Cancelled, Exception), "no handler of errors may swallow it"


def spin(begun: threading.Event, ended: threading.Event) -> None:
    """Work until the work is cancelled."""
    begun.set()
    try:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            check_cancelled()
            time.sleep(0.001)
    finally:
        ended.set()


def test_clients_of_an_executor_take_turns_and_cancelled_functions_end() -> None:
    executor, order = FairExecutor(1, "test", Background()), list[str]()
    begun, ended = threading.Event(), threading.Event()

    async def run() -> None:
        endless = asyncio.create_task(executor.run("greedy", lambda: spin(begun, ended)))
        await asyncio.to_thread(begun.wait, PATIENCE)
        greedy = [
            asyncio.create_task(executor.run("greedy", lambda n=n: order.append(f"greedy {n}"))) for n in range(3)
        ]
        waiting = asyncio.create_task(executor.run("gone", lambda: order.append("gone")))
        modest = asyncio.create_task(executor.run("modest", lambda: order.append("modest")))
        await asyncio.sleep(0)
        waiting.cancel()
        endless.cancel()
        await asyncio.wait_for(asyncio.gather(*greedy, modest), PATIENCE)
        with pytest.raises(ZeroDivisionError):
            await executor.run("modest", lambda: 1 // 0)
        assert await executor.run("modest", lambda: 7) == 7

    asyncio.run(run())
    executor.close()
    assert ended.is_set() and order == ["greedy 0", "modest", "greedy 1", "greedy 2"]


class Endless:
    """A backend whose searches end only if they are cancelled, except for the text `short`."""

    def __init__(self) -> None:
        self.begun, self.ended = threading.Event(), threading.Event()

    def translate(self, lines: Sequence[TextRequest]) -> Iterator[Hypotheses]:
        for text, _ in lines:
            if text != "short":
                spin(self.begun, self.ended)
            yield []

    def continuous(self) -> None:
        return None

    def close(self) -> None: ...


def test_a_search_that_nobody_waits_for_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("dragoman.addons.serving.queueing.line_queue.monotonic", lambda: now[0])
    backend = Endless()
    batcher = Batcher(backend, QueueConfig(gather_milliseconds=0))
    request = Request(None)  # type: ignore[arg-type]
    endless = Ticket([("endless", request), ("also endless", request)], [3, 3])
    batcher.submit(endless)
    assert backend.begun.wait(PATIENCE)
    assert batcher.queue.stalled_seconds == 0
    short = Ticket([("short", request)], [1])
    batcher.submit(short)
    now[0] += 7
    assert batcher.queue.stalled_seconds == 7
    endless.done.cancel()
    assert short.done.result(PATIENCE) == [[]] and backend.ended.is_set()
    assert not batcher.queue.tokens and not batcher.queue.stalled_seconds
    batcher.close()


FORMS = {"text": "a dog", "source": "en", "target": "de"}


@pytest.mark.parametrize(
    "control",
    [
        {"constraints": [["x"] * 21]},
        {"constraints": ["fine", [f"w{number}" for number in range(100_000)]]},
        {"constraints": ["x" * 201]},
        {"glossary": {"dog": ["x"] * 21}},
        {"glossary": {"fine": "gut", "man": [f"w{number}" for number in range(90_000)]}},
        {"glossary": {"d" * 201: None}},
    ],
)
def test_many_forms_are_rejected_before_any_work(control: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []
    encode_phrase = Tokenizer.encode_phrase

    def recording(tokenizer: Tokenizer, text: str) -> list[int]:
        encoded.append(text)
        return encode_phrase(tokenizer, text)

    rows: list[object] = []

    def script(row: object) -> list[str]:
        rows.append(row)
        return shouting(row)  # type: ignore[arg-type]

    monkeypatch.setattr(Tokenizer, "encode_phrase", recording)
    with served({"en-de": script}) as service:  # type: ignore[dict-item]
        answer = posted(service, "/v1/translate", **FORMS, **control)
        assert answer.status_code == 400 and "at most" in answer.json()["error"]
        assert not rows and not encoded
        assert posted(service, "/v1/translate", **FORMS, constraints=[["x"] * 20]).status_code == 200
        assert rows and encoded


def test_readiness_tells_whether_texts_can_be_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("dragoman.addons.serving.queueing.line_queue.monotonic", lambda: now[0])
    begun, go_on = threading.Event(), threading.Event()

    def slow(row: object) -> list[str]:
        begun.set()
        assert go_on.wait(PATIENCE)
        return shouting(row)  # type: ignore[arg-type]

    async def work(client: httpx.AsyncClient) -> list[int]:
        codes = [(await client.get("/health/ready")).status_code]
        task = asyncio.create_task(client.post("/translate", json={"q": "a dog", "source": "en", "target": "de"}))
        await asyncio.to_thread(begun.wait, PATIENCE)
        codes.append((await client.get("/health/ready")).status_code)
        (timeout,) = service._timeouts
        timeout.reschedule(0)  # the request has taken too long
        codes.append((await task).status_code)
        now[0] += service._limits.seconds + 1
        codes.append((await client.get("/health/ready")).status_code)
        codes.append((await client.get("/health")).status_code)
        go_on.set()
        await eventually(lambda: not service.directions.models[0].batcher.queue.tokens)
        codes.append((await client.get("/health/ready")).status_code)
        service.abort()
        codes.append((await client.get("/health/ready")).status_code)
        late = await client.post("/translate", json={"q": "a dog", "source": "en", "target": "de"})
        assert "shutting down" in late.json()["error"]
        return [*codes, late.status_code]

    with served({"en-de": slow}, limits={"seconds": PATIENCE}) as service:  # type: ignore[dict-item]
        assert asked(service, work) == [200, 200, 503, 503, 200, 200, 503, 503]


def test_a_document_leaves_space_in_the_queue_for_others() -> None:
    """A file has more tokens than the queue holds; a short text is translated meanwhile, and nothing is lost."""
    most = list[int]()

    def script(row: object) -> list[str]:
        most.append(service.directions.models[0].batcher.queue.tokens)
        return shouting(row)  # type: ignore[arg-type]

    text = "".join(f"A dog runs number {number} .\n" for number in range(600))

    async def work(client: httpx.AsyncClient) -> tuple[httpx.Response, httpx.Response]:
        fields = {"source": "en", "target": "de"}
        file = asyncio.create_task(client.post("/translate_file", files={"file": ("a.txt", text)}, data=fields))
        await eventually(lambda: most)
        short = await client.post("/translate", json={"q": "a dog", **fields})
        answer = await file
        return short, await client.get(answer.json()["translatedFileUrl"])

    with served({"en-de": script}, queue={"max_tokens": 9000, "batch_lines": 16}) as service:  # type: ignore[dict-item]
        short, file = asked(service, work)
    assert short.status_code == 200 and file.text == text.upper() and max(most) <= 9000


def test_files_are_refused_by_their_size_and_paid_for_later() -> None:
    access = {"requests_per_minute": None, "tokens_per_minute": 40, "loopback_quotas": True}
    small = "A dog runs.\n" * 8

    async def work(client: httpx.AsyncClient) -> list[httpx.Response]:
        fields = {"source": "en", "target": "de"}
        return [
            await client.post("/translate_file", files={"file": ("a.txt", text)}, data=fields)
            for text in ("A dog runs.\n" * 20, small, small)
        ]

    with served({"en-de": shouting}, access=access, limits={"file_characters": 200}) as service:
        large, first, second = asked(service, work)
    assert large.status_code == 413 and "characters of text" in large.json()["error"]
    assert first.status_code == 200, first.text
    assert second.status_code == 429 and int(second.headers["retry-after"]) > 60, "the debt is larger than the quota"


def test_a_file_may_be_as_large_as_its_limit_says() -> None:
    """The form around the file does not count, and a file that is too large is rejected before it is parsed."""
    text = "A dog runs.\n" * 1000

    async def work(client: httpx.AsyncClient) -> list[httpx.Response]:
        fields = {"source": "en", "target": "de", "api_key": ""}
        files = [("a.txt", text), ("a.txt", text + "\n"), ("a.txt", text * 9)]
        return [await client.post("/translate_file", files={"file": each}, data=fields) for each in files]

    with served({"en-de": shouting}, limits={"file_bytes": len(text)}) as service:
        exact, larger, largest = asked(service, work)
    assert exact.status_code == 200, exact.text
    for answer in (larger, largest):
        assert answer.status_code == 413 and "12,000 bytes (limits.file_bytes)" in answer.json()["error"]


def test_the_default_limits_of_files_agree() -> None:
    """Every text file of the maximum size may be translated, and the shipped proxy waits long enough for it."""
    limits = LimitsConfig()
    assert limits.file_characters >= limits.file_bytes and limits.upload_bytes >= limits.file_bytes
    seconds = limits.file_seconds * limits.file_bytes / 1_000_000
    nginx = (ROOT / "deploy" / "nginx.conf").read_text()
    assert f"proxy_read_timeout {seconds + 10:.0f}s;" in nginx


def test_long_documents_have_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.addons.serving.service.step_translation._CHARACTERS", 100)
    limits: list[TimeLimit] = []

    class Noted(TimeLimit):
        def __init__(self, timeout: asyncio.Timeout, seconds: float) -> None:
            super().__init__(timeout, seconds)
            limits.append(self)

    monkeypatch.setattr("dragoman.addons.serving.service.service.TimeLimit", Noted)
    texts = ["".join(f"A dog runs number {number} .\n" for number in range(count)) for count in (120, 4)]

    async def work(client: httpx.AsyncClient) -> list[httpx.Response]:
        fields = {"source": "en", "target": "de"}
        return [await client.post("/translate_file", files={"file": ("a.txt", text)}, data=fields) for text in texts]

    with served({"en-de": shouting}, limits={"file_seconds": PATIENCE}) as service:
        assert [answer.status_code for answer in asked(service, work)] == [200, 200]
    sizes = [sum(len(line) for line in text.splitlines()) for text in texts]
    assert sizes[0] > 2000 and sizes[1] < 100
    translations = limits[2::4]  # after decoding and the source language, and before storing
    assert [limit.seconds for limit in translations] == pytest.approx([PATIENCE * sizes[0] / 100, PATIENCE])


def test_documents_that_take_too_long_are_given_up() -> None:
    given_up = threading.Event()

    def slow(row: object) -> list[str]:
        given_up.wait(PATIENCE)
        return shouting(row)  # type: ignore[arg-type]

    async def work(client: httpx.AsyncClient) -> httpx.Response:
        fields = {"source": "en", "target": "de"}
        try:
            return await client.post("/translate_file", files={"file": ("a.txt", "A dog runs.\n")}, data=fields)
        finally:
            given_up.set()

    with served({"en-de": slow}, limits={"file_seconds": 0.2}) as service:  # type: ignore[dict-item]
        answer = asked(service, work)
    assert answer.status_code == 503 and "took longer than 0.2 seconds" in answer.json()["error"], answer.text


@pytest.mark.parametrize(("seconds", "status"), [pytest.param(PATIENCE, 200, marks=pytest.mark.slow), (0.3, 503)])
def test_documents_are_freed_at_once(seconds: float, status: int) -> None:
    """The garbage collector, which runs rarely in a server, is not needed, whether a document is translated or not."""

    def slow(row: object) -> list[str]:
        time.sleep(0.02)
        return shouting(row)  # type: ignore[arg-type]

    def count() -> int:
        found = [each for each in gc.get_objects() if isinstance(each, Sentence | Translation)]
        return sum("UNICORN" in each.text.upper() for each in found)

    text = "".join(f"A unicorn runs number {number} .\n" for number in range(40))

    async def work(client: httpx.AsyncClient) -> int:
        fields = {"source": "en", "target": "de"}
        answer = await client.post("/translate_file", files={"file": ("a.txt", text)}, data=fields)
        await eventually(lambda: not count(), interval=0.1)  # the current sentence is still being translated
        return answer.status_code

    gc.collect()
    gc.disable()
    try:
        queue = {"cache_entries": 0}
        with served({"en-de": slow}, limits={"file_seconds": seconds}, queue=queue) as service:  # type: ignore[dict-item]
            assert asked(service, work) == status
    finally:
        gc.enable()


def test_aborted_documents_are_answered_in_json() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(row: object) -> list[str]:
        begun.set()
        assert go_on.wait(PATIENCE)
        return shouting(row)  # type: ignore[arg-type]

    async def work(client: httpx.AsyncClient) -> httpx.Response:
        fields = {"source": "en", "target": "de"}
        task = asyncio.create_task(client.post("/translate_file", files={"file": ("a.txt", "A dog.")}, data=fields))
        await asyncio.to_thread(begun.wait, PATIENCE)
        service.abort()
        answer = await task
        go_on.set()
        return answer

    with served({"en-de": slow}) as service:  # type: ignore[dict-item]
        answer = asked(service, work)
    assert answer.status_code == 503 and "shutting down" in answer.json()["error"] and answer.headers["retry-after"]


def test_parsers_are_cancelled() -> None:
    """Parsing and dividing a document stop when no client is waiting."""
    cancellation = Cancellation()
    cancellation.cancel()
    with served({"en-de": shouting}), cancellation.active(), pytest.raises(Cancelled):
        get_format("html").parse("<p>A dog." * 100)
    with cancellation.active(), pytest.raises(Cancelled):
        list(tokenize("<a " * 100))


def test_overloaded_is_reported_before_models_are_loaded() -> None:
    from dragoman.addons.serving.service.service import Service

    with pytest.raises(Overloaded):
        Service().check_ready()


def test_lines_with_requirements_do_not_delay_other_lines() -> None:
    endless, shouting_backend = Endless(), Endless()
    batcher = Batcher(shouting_backend, QueueConfig(gather_milliseconds=0), control_backend=endless)
    control = Request(None, control=Control.of(["x"]))  # type: ignore[arg-type]
    expensive = Ticket([("short", Request(None)), ("expensive", control)], [1, 3])  # type: ignore[arg-type]
    batcher.submit(expensive)
    assert endless.begun.wait(PATIENCE)
    short = Ticket([("short", Request(None))], [1])  # type: ignore[arg-type]
    batcher.submit(short)
    assert short.done.result(PATIENCE) == [[]] and not expensive.is_done and not shouting_backend.begun.is_set()
    expensive.done.cancel()
    batcher.close()
    assert endless.ended.is_set() and not batcher.queue.tokens and not batcher.control_queue.tokens
