"""API keys and quotas in the routes."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from scripted_server import asked, posted, served, shouting

from dragoman.addons.serving.access.access import Access
from dragoman.addons.serving.access.keys import Keys
from dragoman.addons.serving.http.application import Application
from dragoman.addons.serving.http.metrics import Metrics
from dragoman.engines.engine import Row

OPEN = {"/health": 200, "/health/ready": 200, "/download_file/{id}/{name}": 404, "/metrics": 200}
"""Routes without a key: health checks, files, whose ids cannot be guessed, and metrics, which have their own right."""
LISTS = ("/languages", "/frontend/settings")
"""Routes that clients of LibreTranslate read without a key. A wrong key is rejected, so that it can be checked."""
BODY = {"q": "a dog", "source": "en", "target": "de"}
FILE = {"files": {"file": ("a.txt", b"a dog")}, "data": {"source": "en", "target": "de"}}
FIELDS = {
    "/translate": BODY,
    "/suggest": {**BODY, "s": "ein Hund"},
    "/detect": {"q": "a dog"},
    "/v1/translate": {"text": "a dog", "target": "de"},
    "/v1/predict": {"text": "a dog"},
    "/v1/score": {"text": "a dog", "model": "none"},
    "/v1/completions": {"prompt": "a dog", "model": "none"},
}
WITHOUT_MODEL = ("/v1/predict", "/v1/score", "/v1/completions", "/v1/models/{name}")
"""Routes of models that the server does not have."""


def test_every_route_requires_a_key(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with Keys(tmp_path / "keys.db") as keys:
        good, revoked = keys.add("good"), keys.add("revoked")
        keys.revoke("revoked")
    access = {"keys": tmp_path / "keys.db"}
    kept = tmp_path / "suggestions.jsonl"
    with served({"en-de": shouting}, access=access, log=True, suggestions=kept) as service:
        config = service.config  # type: ignore[attr-defined]
        app = Application(service, Access(config.access), config, Metrics())
        routes = [(path, method.upper()) for path, methods in app.openapi()["paths"].items() for method in methods]
        assert len(routes) >= 8

        async def work(client: httpx.AsyncClient) -> dict[str, list[int]]:
            found = {}
            for path, method in routes:
                body = FILE if path == "/translate_file" else {"json": FIELDS[path]} if method == "POST" else {}
                statuses = []
                for key in (None, "", "dgm_wrong", revoked.text, good.text):
                    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
                    statuses.append((await client.request(method, path, headers=headers, **body)).status_code)
                found[path] = statuses
            return found

        found = asked(service, work)
        for path, statuses in found.items():
            answered = 404 if path in WITHOUT_MODEL else 200
            without = 200 if path in LISTS else 401
            wanted = [OPEN[path]] * 5 if path in OPEN else [without, without, 403, 403, answered]
            assert statuses == wanted, (path, statuses)
        assert posted(service, "/translate", **BODY, api_key=good.text).status_code == 200
        assert posted(service, "/translate", **BODY, api_key=revoked.text).json() == {
            "error": "a valid API key is required"
        }
        in_form = asked(service, lambda client: client.request("GET", "/languages", data={"api_key": good.text}))
        assert in_form.status_code == 200
    log = capfd.readouterr().err
    assert good.key.id in log and '"refused": "revoked"' in log and '"refused": "missing"' in log
    assert good.text not in log and revoked.text not in log and "a dog" not in log


def test_quotas_of_requests_and_of_tokens() -> None:
    access = {"requests_per_minute": 3, "tokens_per_minute": 50, "loopback_quotas": True}
    with served({"en-de": shouting}, access=access) as service:

        async def work(client: httpx.AsyncClient) -> list[httpx.Response]:
            texts = ["a dog", "a dog " * 30, "a", "a"]
            return [await client.post("/translate", json={**BODY, "q": text}) for text in texts]

        small, large, fine, fourth = asked(service, work)
        assert small.status_code == fine.status_code == 200
        assert large.status_code == fourth.status_code == 429
        assert "tokens" in large.json()["error"] and 1 <= int(large.headers["retry-after"]) <= 60
        assert "requests" in fourth.json()["error"] and 1 <= int(fourth.headers["retry-after"]) <= 60
        assert not any(model.batcher.queue.tokens for model in service.directions.models)


def test_requests_that_find_the_queue_full_are_not_counted() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(row: Row) -> list[str]:
        begun.set()
        assert go_on.wait(10)
        return shouting(row)

    async def work(client: httpx.AsyncClient) -> list[int]:
        first = asyncio.create_task(client.post("/translate", json={**BODY, "q": "a dog"}))
        await asyncio.to_thread(begun.wait, 10)
        full = [await client.post("/translate", json={**BODY, "q": "b " * 10}) for _ in range(5)]
        go_on.set()
        await first
        last = await client.post("/translate", json={**BODY, "q": "c " * 10})
        return [each.status_code for each in (*full, last)]

    limits = {"requests_per_minute": None, "tokens_per_minute": 60, "loopback_quotas": True}
    with served({"en-de": slow}, access=limits, queue={"max_tokens": 15}) as service:
        assert asked(service, work) == [503] * 5 + [200]


def test_everything_that_comes_is_counted_before_its_body_is_read(tmp_path: Path) -> None:
    """Invalid bodies and wrong keys count; a key in the body does not count for its address."""
    limits = {"requests_per_minute": 3, "tokens_per_minute": None, "loopback_quotas": True}
    read: list[bytes] = []

    async def body() -> AsyncIterator[bytes]:
        read.append(b"{}")
        yield read[-1]

    async def work(client: httpx.AsyncClient) -> list[int]:
        headers = {"content-type": "application/json"}
        return [(await client.post("/translate", content=body(), headers=headers)).status_code for _ in range(5)]

    with served({"en-de": shouting}, access=limits) as service:
        assert asked(service, work) == [400] * 3 + [429] * 2 and len(read) == 3
    with Keys(tmp_path / "keys.db") as keys:
        good = keys.add("good", requests_per_minute=5).text

    async def guess(client: httpx.AsyncClient) -> list[int]:
        found = [
            (await client.post("/translate", json={**BODY, "api_key": key})).status_code
            for key in (good, good, "dgm_wrong", "", "dgm_wrong", good)
        ]
        header = {"authorization": f"Bearer {good}"}
        return [*found, (await client.post("/translate", json=BODY, headers=header)).status_code]

    with served({"en-de": shouting}, access={**limits, "keys": tmp_path / "keys.db"}) as service:
        assert asked(service, guess) == [200, 200, 403, 401, 403, 429, 200]


def test_a_pivot_counts_a_text_once() -> None:
    limits = {"requests_per_minute": None, "tokens_per_minute": 20, "loopback_quotas": True}
    with served({"de-en": shouting, "en-fr": shouting}, access=limits) as service:
        assert posted(service, "/translate", q="a dog runs", source="de", target="fr").status_code == 200
