"""Requests and answers: LibreTranslate's routes, /v1, errors and limits."""

import asyncio
import json
import re
import threading
from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_server import asked, posted, served, shouting
from waiting import PATIENCE, eventually, wait_until

from dragoman.addons.serving.errors import RequestError
from dragoman.addons.serving.http import fields
from dragoman.addons.serving.http.routes.v1 import TranslateV1Fields
from dragoman.addons.serving.http.site_check import SiteCheck
from dragoman.addons.serving.service.text_batch import TextBatch
from dragoman.engines.engine import Row
from dragoman.text.languages.detector import Detector


def test_one_text_and_several() -> None:
    with served({"en-de": shouting}) as service:
        assert posted(service, "/translate", q="A dog. It runs.", source="en", target="de").json() == {
            "translatedText": "A DOG. IT RUNS."
        }
        found = posted(service, "/translate", q=["a", "", "b\n\n c d "], source="en", target="de").json()
        assert found == {"translatedText": ["A", "", "B\n\n C D "]}
        assert posted(service, "/translate", q=[], source="en", target="de").json() == {"translatedText": []}
        assert posted(service, "/translate", q="", source="en", target="de").json() == {"translatedText": ""}


def test_alternatives_and_detection_only_if_requested() -> None:
    with served({"en-de": shouting}) as service:
        one = posted(service, "/translate", q="A dog. It", source="auto", target="de", alternatives=2).json()
        assert one["translatedText"] == "A DOG. IT" and one["alternatives"] == ["A DOG.! IT!", "A DOG.!! IT!!"]
        assert set(one["detectedLanguage"]) == {"confidence", "language"}
        several = posted(service, "/translate", q=["a", "b"], source="auto", target="de", alternatives=1).json()
        assert several["alternatives"] == [["A!"], ["B!"]]
        assert [each["language"] for each in several["detectedLanguage"]] == ["en", "en"]
        assert (
            "alternatives" not in posted(service, "/translate", q="a", source="en", target="de", alternatives=0).json()
        )


def test_markup_is_kept_in_html() -> None:
    with served({"en-de": shouting}) as service:
        found = posted(service, "/translate", q="<p>a &amp; b</p>", source="en", target="de", format="html").json()
        assert found == {"translatedText": "<p>A &amp; B</p>"}


def test_forms_as_well_as_json() -> None:
    async def work(client: httpx.AsyncClient) -> list[Any]:
        form = await client.post("/translate", data={"q": "ä b", "source": "en", "target": "de", "api_key": ""})
        both = await client.post("/translate", data={"q": ["a", "b"], "source": "en", "target": "de", "format": ""})
        languages = await client.request("GET", "/languages", data={"api_key": "x"})
        detected = await client.post("/detect", data={"q": "a dog"})
        return [form.json(), both.json(), languages.json(), detected.json()]

    with served({"en-de": shouting}) as service:
        form, both, languages, detected = asked(service, work)
    assert form == {"translatedText": "Ä B"} and both == {"translatedText": ["A", "B"]}
    assert languages == [{"code": "en", "name": "English", "targets": ["de"]}]
    assert detected[0]["language"] == "en" and 0 <= detected[0]["confidence"] <= 100


@pytest.mark.parametrize(
    ("body", "kind", "status", "told"),
    [
        (b"{", "application/json", 400, "not valid JSON"),
        (b"[1]", "application/json", 400, "not a JSON object"),
        (b'{"q": "\xff"}', "application/json", 400, "not valid UTF-8"),
        (b'{"q": NaN}', "application/json", 400, "not valid JSON"),
        (b"[" * 100_000, "application/json", 400, "not valid JSON"),
        (b'{"q": "a", "source": "en"}', "application/json", 400, "missing target"),
        (b'{"q": 7, "source": "en", "target": "de"}', "application/json", 400, "q"),
        (b'{"q": "a", "source": "en", "target": "fr"}', "application/json", 400, "fr is not supported"),
        (b'{"q": "a", "source": "fr", "target": "de"}', "application/json", 400, "fr is not supported"),
        (b'{"q": "a", "source": "en", "target": "de", "format": "pdf"}', "application/json", 400, "format"),
        (b'{"q": "a", "source": "en", "target": "de", "alternatives": 6}', "application/json", 400, "at most 5"),
        (b'{"q": "a", "source": "en", "target": "de", "alternatives": -1}', "application/json", 400, "alternatives"),
        (b"q=%ff&source=en&target=de", "application/x-www-form-urlencoded", 400, "not valid UTF-8"),
        (b"&".join([b"q=a"] * 1001), "application/x-www-form-urlencoded", 400, "not a valid form"),
        (b"hello", "text/plain", 400, "unsupported content type"),
        (b"x" * 1_000_001, "application/json", 413, "1,000,000 bytes"),
    ],
)
def test_invalid_requests_are_explained(body: bytes, kind: str, status: int, told: str) -> None:
    with served({"en-de": shouting}) as service:
        answer = asked(service, lambda client: client.post("/translate", content=body, headers={"content-type": kind}))
    assert answer.status_code == status and list(answer.json()) == ["error"], answer.text
    assert told in answer.json()["error"]
    assert len(answer.json()["error"]) < 200, "what was sent is not sent back"


def test_lone_surrogates_in_json_are_replaced() -> None:
    body = rb'{"q": "a \ud800 b \ud83d\ude00 \u0000", "source": "en", "target": "de"}'
    with served({"en-de": shouting}) as service:
        answer = asked(
            service,
            lambda client: client.post("/translate", content=body, headers={"content-type": "application/json"}),
        )
    assert answer.json() == {"translatedText": "A \ufffd B 😀 \0"}


@given(st.lists(st.text(st.characters() | st.characters(categories=["Cs"])) | st.sampled_from(["\\ud800", "\\\\"])))
def test_values_are_inspected_for_surrogates_if_their_escapes_occur(texts: list[str]) -> None:
    body = json.dumps({"q": texts}).encode()
    parsed = fields._parse_json(body, "utf-8")
    assert parsed == fields._replace_surrogates(json.loads(body))


def test_requests_without_escaped_surrogates_are_not_inspected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fields, "_replace_surrogates", None)
    assert fields._parse_json('{"q": ["ä 😀", "\\u00e4"]}'.encode(), "utf-8") == {"q": ["ä 😀", "ä"]}


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"text": [1] * 5000}, "Invalid request: text"),
        ({"text": "a", "constraints": [1] * 5000}, "Invalid request: constraints"),
        ({"text": "a", "glossary": {f"w{number}": number for number in range(5000)}}, "Invalid request: glossary"),
        ({"text": "a", "constraints": ["a"] * 500 + [1] * 500}, "Invalid request: 1,000 of its values are invalid"),
    ],
)
def test_one_of_many_errors_is_described_without_the_others(
    values: dict[str, Any], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = []
    describe = fields._describe_first_error

    def counted(error: Any, *arguments: Any) -> tuple[str, str]:
        errors = type(error).errors

        class Counted:
            error_count = error.error_count

            def errors(self, **options: Any) -> Any:
                described.append(error.error_count())
                return errors(error, **options)

        return describe(Counted(), *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(fields, "_describe_first_error", counted)
    with pytest.raises(RequestError, match=told):
        fields.validate({"target": "de", **values}, TranslateV1Fields)
    assert all(count <= 50 for count in described)


def test_limits() -> None:
    limits = {"characters": 10, "texts": 2, "body_bytes": 300}
    with served({"en-de": shouting}, limits=limits) as service:
        pair = {"source": "en", "target": "de"}
        assert posted(service, "/translate", q="x" * 10, **pair).status_code == 200
        assert "11 characters" in posted(service, "/translate", q="x" * 11, **pair).json()["error"]
        assert "11 characters" in posted(service, "/translate", q=["x" * 5, "y" * 6], **pair).json()["error"]
        assert "3 texts" in posted(service, "/translate", q=["x"] * 3, **pair).json()["error"]
        assert posted(service, "/translate", q="x" * 300, **pair).status_code == 413
        settings = asked(service, lambda client: client.get("/frontend/settings")).json()
        assert settings["charLimit"] == 10


def test_two_models_serve_a_third_direction() -> None:
    def marked(sign: str) -> Any:
        return lambda row: [f"{sign}{row.text}", f"{sign}{row.text} 2"]

    scripts = {"de-en": marked("e:"), "en-fr": marked("f:"), "en-de": marked("d:")}
    with served(scripts) as service:
        assert posted(service, "/translate", q="a", source="de", target="fr").json() == {"translatedText": "f:e:a"}
        found = posted(service, "/translate", q="a", source="de", target="fr", alternatives=1).json()
        assert found["alternatives"] == ["f:e:a 2"]
        languages = asked(service, lambda client: client.get("/languages")).json()
        assert {each["code"]: each["targets"] for each in languages} == {"de": ["en", "fr"], "en": ["fr", "de"]}
    with served(scripts, pivots=[]) as service:
        assert posted(service, "/translate", q="a", source="de", target="fr").status_code == 400


def test_a_full_queue_refuses_at_once_and_late_requests_time_out() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(row: Row) -> Sequence[str]:
        begun.set()
        assert go_on.wait(PATIENCE)
        return shouting(row)

    async def work(client: httpx.AsyncClient) -> tuple[httpx.Response, httpx.Response, httpx.Response]:
        fields = {"source": "en", "target": "de"}
        first = asyncio.create_task(client.post("/translate", json={"q": "a dog", **fields}))
        await asyncio.to_thread(begun.wait, PATIENCE)
        full = await client.post("/translate", json={"q": "b " * 100, **fields})
        (timeout,) = service._timeouts
        timeout.reschedule(0)
        late = await first
        go_on.set()
        await eventually(lambda: not service.directions.models[0].batcher.queue.tokens)
        return full, late, await client.post("/translate", json={"q": "c", **fields})

    limits, queue = {"seconds": PATIENCE}, {"max_tokens": 50}
    with served({"en-de": slow}, limits=limits, queue=queue) as service:
        full, late, after = asked(service, work)
        assert full.status_code == 503 and int(full.headers["retry-after"]) >= 1
        assert late.status_code == 503 and "120 seconds" in late.json()["error"]
        assert after.json() == {"translatedText": "C"}


def test_one_bad_request_never_fails_its_batch() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def script(row: Row) -> Sequence[str]:
        begun.set()
        assert go_on.wait(PATIENCE)
        if "bad" in row.text:
            raise RuntimeError("a fault")
        return shouting(row)

    async def work(client: httpx.AsyncClient) -> list[httpx.Response]:
        first = asyncio.create_task(client.post("/translate", json={"q": "x", "source": "en", "target": "de"}))
        await asyncio.to_thread(begun.wait, PATIENCE)
        texts = ["a", "bad text", "b"]
        others = [client.post("/translate", json={"q": text, "source": "en", "target": "de"}) for text in texts]
        tasks = [asyncio.create_task(other) for other in others]
        await eventually(lambda: service.directions.models[0].batcher.queue.lines == len(texts))
        go_on.set()
        return [await first, *[await task for task in tasks]]

    with served({"en-de": script}) as service:
        answers = asked(service, work)
    assert [answer.status_code for answer in answers] == [200, 200, 500, 200]
    assert "internal error" in answers[2].json()["error"] and "bad text" not in answers[2].text


@pytest.mark.parametrize("is_outside", [False, True])
def test_an_internal_error_is_counted_and_logged_under_its_id(
    is_outside: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """In a route, and in the layers around it."""

    def fail(*_: object) -> None:
        raise ValueError("a fault")

    part, name = (SiteCheck, "refusal") if is_outside else (Detector, "detect")
    with served({"en-de": shouting}, log=True) as service:

        async def work(client: httpx.AsyncClient) -> tuple[httpx.Response, str]:
            with monkeypatch.context() as patch:
                patch.setattr(part, name, fail)
                answer = await client.post("/detect", json={"q": "a dog"})
            return answer, (await client.get("/metrics")).text

        answer, metrics = asked(service, work)
    assert answer.status_code == 500 and answer.headers["x-content-type-options"] == "nosniff"
    id = answer.json()["error"].removeprefix("internal error ").partition(":")[0]
    log = capfd.readouterr().err
    assert f"error: internal error {id}\nTraceback" in log and "ValueError: a fault" in log
    assert f'"error_id": "{id}"' in log and '"status": 500' in log
    assert re.search(r'dragoman_requests_total\{route="(/detect|none)",status="500"\} 1', metrics)
    assert 'dragoman_failed_requests_total{reason="internal"} 1' in metrics


def test_an_internal_error_within_a_stream_is_counted_and_logged(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    async def fail(*_: object) -> None:
        raise ValueError("a fault")

    async def work(client: httpx.AsyncClient) -> tuple[str, str]:
        with monkeypatch.context() as patch:
            patch.setattr(TextBatch, "translate", fail)
            body = {"text": "a dog", "source": "en", "target": "de", "stream": True}
            answer = await client.post("/v1/translate", json=body)
        return answer.text, (await client.get("/metrics")).text

    with served({"en-de": shouting}, log=True) as service:
        answer, metrics = asked(service, work)
    id = re.search(r"internal error (\w+)", answer.splitlines()[-1])
    log = capfd.readouterr().err
    assert id is not None and f'"error_id": "{id[1]}"' in log and "ValueError: a fault" in log
    assert 'dragoman_failed_requests_total{reason="internal"} 1' in metrics


def test_v1_returns_all_details() -> None:
    with served({"en-de": shouting}) as service:
        found = posted(service, "/v1/translate", text="A dog. It", source="en", target="de", nbest=2).json()
        assert found["source"] == "en" and found["target"] == "de" and found["detected"] is None
        (text,) = found["translations"]
        assert text["text"] == "A DOG. IT" and text["alternatives"] == ["A DOG.! IT!"]
        assert [each["source"] for each in text["sentences"]] == ["A dog.", "It"]
        assert [each["text"] for each in text["sentences"][0]["hypotheses"]] == ["A DOG.", "A DOG.!"]
        assert text["sentences"][0]["hypotheses"][0]["log_probability"] == -1.0
        auto = posted(service, "/v1/translate", text=["", "a"], target="de").json()
        assert auto["detected"]["language"] == "en" and len(auto["translations"]) == 2


def test_v1_settings_reach_the_search() -> None:
    rows: list[Row] = []

    def script(row: Row) -> Sequence[str]:
        rows.append(row)
        return ["Hund www.a.de"]

    fields = {"text": "dog www.a.de", "source": "en", "target": "de", "beam": 3, "length_penalty": 0.2}
    with served({"en-de": script}) as service:
        found = posted(service, "/v1/translate", **fields, glossary={"dog": ["Hund", "Hunde"]}, keep=["url"])
        assert found.json()["translations"][0]["text"].startswith("Hund"), found.text
        constrained, without_terms = rows  # the second search shows where the terms of the glossary belong
        assert constrained.decoding.beam == 3
        assert [len(each.constraints) for each in (constrained, without_terms)] == [2, 1]
        for name, value in (
            ("beam", 99),
            ("nbest", 99),
            ("constraints", ["a"] * 11),
            ("glossary", {"a" * n: "b" for n in range(1, 502)}),
            ("unknown", 1),
        ):
            refused = posted(service, "/v1/translate", **{**fields, name: value})
            assert refused.status_code == 400 and name in refused.json()["error"], refused.text
        wrong = posted(service, "/v1/translate", **{**fields, "glossary": {"": "b"}})
        assert wrong.status_code == 400 and "phrase" in wrong.json()["error"]


def test_v1_streams_sentences() -> None:
    with served({"en-de": shouting}) as service:
        answer = posted(service, "/v1/translate", text=["A dog. It", "c"], source="en", target="de", stream=True)
        *sentences, whole = map(json.loads, answer.text.splitlines())
        told = {(each["text"], each["sentence"]): each["translation"] for each in sentences}
        assert told == {(0, 0): "A DOG.", (0, 1): "IT", (1, 0): "C"}
        assert [each["text"] for each in whole["translations"]] == ["A DOG. IT", "C"]
        refused = posted(service, "/v1/translate", text="a", source="en", target="fr", stream=True)
        assert refused.status_code == 400 and "error" in refused.json()


def test_operations() -> None:
    async def work(client: httpx.AsyncClient) -> list[httpx.Response]:
        await client.post("/translate", json={"q": "secret text", "source": "en", "target": "de", "api_key": "k-e-y"})
        return [await client.get(route) for route in ("/health", "/health/ready", "/metrics", "/nothing", "/translate")]

    with served({"en-de": shouting}) as service:
        health, ready, metrics, nothing, wrong_method = asked(service, work)
        service.is_shutting_down = True
        ending = asked(service, lambda client: client.get("/health/ready"))
    assert health.json() == ready.json() == {"status": "ok"}
    assert 'dragoman_requests_total{route="/translate",status="200"} 1.0' in metrics.text
    assert "secret" not in metrics.text and "k-e-y" not in metrics.text
    assert nothing.status_code == 404 and wrong_method.status_code == 405
    assert all(list(each.json()) == ["error"] for each in (nothing, wrong_method, ending)) and ending.status_code == 503
    for answer in (health, nothing):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")


def test_requests_of_disconnected_clients_are_not_translated() -> None:
    begun, go_on, texts = threading.Event(), threading.Event(), []

    def script(row: Row) -> Sequence[str]:
        texts.append(row.text)
        begun.set()
        assert go_on.wait(PATIENCE)
        return shouting(row)

    async def work(client: httpx.AsyncClient) -> None:
        fields = {"source": "en", "target": "de"}
        first = asyncio.create_task(client.post("/translate", json={"q": "first", **fields}))
        await asyncio.to_thread(begun.wait, PATIENCE)
        gone = asyncio.create_task(client.post("/translate", json={"q": "gone", **fields}))
        (model,) = service.directions.models
        await eventually(lambda: model.batcher.queue.lines)
        gone.cancel()
        await eventually(lambda: not model.batcher.queue.lines)
        go_on.set()
        assert (await first).json() == {"translatedText": "FIRST"}
        last = await client.post("/translate", json={"q": "last", **fields})
        assert last.json() == {"translatedText": "LAST"}

    with served({"en-de": script}, queue={"cache_entries": 0}) as service:
        asked(service, work)
        wait_until(lambda: not any(model.batcher.queue.tokens for model in service.directions.models))
    assert texts == ["first", "last"]


def test_long_sentences_are_split() -> None:
    """The time of a search grows with the square of the length."""
    lengths = list[int]()

    def script(row: Any) -> list[str]:
        lengths.append(len(row.source))
        return [row.text.upper()]

    text = "".join("abcdefghij"[number % 10] for number in range(1500))
    with served({"en-de": script}, limits={"sentence_tokens": 100}) as service:
        answer = posted(service, "/translate", q=text, source="en", target="de").json()
        short = posted(service, "/translate", q="ab " * 20, source="en", target="de").json()
    assert answer["translatedText"].replace(" ", "") == text.upper() and max(lengths) <= 101
    assert short["translatedText"].strip() == ("AB " * 20).strip()
