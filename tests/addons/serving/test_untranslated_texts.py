"""Texts without words, or in the target language already, come back as they are, alone and next to other texts."""

import json
import re
import threading
from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from scripted_server import asked, posted, served, shouting

from dragoman.engines.engine import Row

WORDLESS = ["👍", "12:30", "", " \n ", "???", "2024-01-01", "€ 5,00"]
GERMAN = "Zwei Männer spielen heute auf der Straße mit einem Ball."
ENGLISH = "Two dogs are playing in the snow with a red ball."


@pytest.fixture(scope="module")
def both() -> Any:
    with served({"en-de": shouting, "de-en": shouting}) as service:
        yield service


@pytest.mark.parametrize("target", ["en", "de"])
@pytest.mark.parametrize("source", ["auto", "AUTO", "en", "de"])
def test_texts_without_words(both: Any, source: str, target: str) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        for text in WORDLESS:
            answer = await client.post("/translate", json={"q": text, "source": source, "target": target})
            assert (answer.status_code, answer.json()["translatedText"]) == (200, text)
            answer = await client.post("/v1/translate", json={"text": text, "source": source, "target": target})
            assert (answer.status_code, answer.json()["translations"][0]["text"]) == (200, text)
        answer = await client.post("/translate", json={"q": WORDLESS, "source": source, "target": target})
        assert answer.json()["translatedText"] == WORDLESS

    asked(both, work)


def test_texts_in_the_target_language(both: Any) -> None:
    for target, text, other in (("de", GERMAN, ENGLISH), ("en", ENGLISH, GERMAN)):
        alone = posted(both, "/translate", q=text, source="auto", target=target, alternatives=1).json()
        assert alone["translatedText"] == text and alone["alternatives"] == []
        assert alone["detectedLanguage"]["language"] == target and alone["detectedLanguage"]["confidence"] > 90
        mixed = posted(both, "/translate", q=[other, text, "👍", other], source="auto", target=target).json()
        assert mixed["translatedText"] == [other.upper(), text, "👍", other.upper()]
        assert [each["language"] for each in mixed["detectedLanguage"]][:2] != [target, target]
        v1 = posted(both, "/v1/translate", text=["👍", text, other], target=target).json()
        assert [each["text"] for each in v1["translations"]] == ["👍", text, other.upper()]
        assert [each["source"] == target for each in v1["translations"]] == [True, True, False]
        assert v1["source"] == v1["detected"]["language"] == v1["translations"][2]["source"]


@pytest.mark.parametrize("code", ["en", "de", "EN", "de-DE", "de_AT"])
def test_a_language_into_itself(code: str) -> None:
    with served({"en-de": shouting}) as service:
        target = code[:2].lower()
        for text in (GERMAN, ENGLISH, "A <b>dog</b>."):
            assert posted(service, "/translate", q=text, source=code, target=target).json() == {"translatedText": text}
        found = posted(
            service, "/v1/translate", text=GERMAN, source=code, target=target, alignment=True, nbest=2
        ).json()
        assert found["translations"][0] == {
            "text": GERMAN, "source": target, "alternatives": [], "sentences": [], "error": None,
            "other_language": None,
        }  # fmt: skip


def test_a_stream_and_a_file() -> None:
    with served({"en-de": shouting, "de-en": shouting}) as service:
        fields = {"text": ["👍", ENGLISH, GERMAN], "target": "de", "stream": True}
        lines = [json.loads(line) for line in posted(service, "/v1/translate", **fields).text.splitlines()]
        assert [each["text"] for each in lines[:-1]] == [1] and lines[0]["translation"] == ENGLISH.upper()
        assert [each["text"] for each in lines[-1]["translations"]] == ["👍", ENGLISH.upper(), GERMAN]

        async def upload(client: httpx.AsyncClient) -> list[str]:
            contents = []
            for content, source in (("12:30\n", "auto"), (f"{GERMAN}\n", "auto"), (f"{ENGLISH}\n", "de")):
                file = {"file": ("a.txt", content.encode())}
                answer = await client.post("/translate_file", files=file, data={"source": source, "target": "de"})
                assert answer.status_code == 200, answer.text
                contents.append((await client.get(answer.json()["translatedFileUrl"])).text)
            return contents

        assert asked(service, upload) == ["12:30\n", f"{GERMAN}\n", f"{ENGLISH}\n"]


def test_an_unknown_language_on_a_server_of_one_direction() -> None:
    with served({"en-de": shouting}) as service:
        assert posted(service, "/translate", q="Hi", source="auto", target="de").json()["translatedText"] == "HI"
        for text in ("привет", GERMAN):
            found = posted(service, "/translate", q=text, source="auto", target="de").json()
            assert found["translatedText"] == text


def test_a_detected_language_without_a_model_is_an_error() -> None:
    """A French text is not returned as if it were its own translation, but it fails no other text."""
    french, told = "Deux hommes jouent au ballon dans la rue.", "translation from fr into de is not supported"
    with served({"en-de": shouting, "de-en": shouting, "en-fr": shouting}) as service:
        for route, field in (("/translate", "q"), ("/v1/translate", "text")):
            answer = posted(service, route, **{field: french}, source="auto", target="de")
            assert answer.status_code == 400 and answer.json()["error"].startswith(told)
        found = posted(service, "/translate", q=[french, ENGLISH, "👍"], source="auto", target="de").json()
        assert found["translatedText"] == [french, ENGLISH.upper(), "👍"]
        assert found["errors"][0].startswith(told) and found["errors"][1:] == [None, None]
        texts = posted(service, "/v1/translate", text=[french, ENGLISH], target="de").json()["translations"]
        assert texts[0]["error"].startswith(told) and texts[1]["text"] == ENGLISH.upper()

        async def upload(client: httpx.AsyncClient) -> httpx.Response:
            file = {"file": ("a.txt", french.encode())}
            return await client.post("/translate_file", files=file, data={"source": "auto", "target": "de"})

        assert asked(service, upload).status_code == 400


def test_messages_never_deny_a_language_that_is_served() -> None:
    with served({"en-de": shouting, "en-fr": shouting}) as service:
        for source, target, told in (
            ("de", "fr", "translation from de into fr is not supported: this server translates only from en"),
            ("de", "en", "translation from de into en is not supported: this server translates only from en"),
            ("en", "xx", "xx is not supported: this server supports en, de, fr"),
            ("xx", "en", "xx is not supported: this server supports en, de, fr"),
            ("xx", "xx", "xx is not supported: this server supports en, de, fr"),
        ):
            answer = posted(service, "/translate", q="a", source=source, target=target)
            assert (answer.status_code, answer.json()) == (400, {"error": told})


def test_an_error_of_one_text_concerns_only_this_text() -> None:
    def script(row: Row) -> Sequence[str]:
        if "bad" in row.text:
            raise RuntimeError("a fault")
        return shouting(row)

    with served({"en-de": script}) as service:
        pair = {"source": "en", "target": "de"}
        found = posted(service, "/translate", q=["a", "bad", "b"], **pair)
        assert found.status_code == 200
        content = found.json()
        told = content["errors"].pop(1)
        assert content == {"translatedText": ["A", "bad", "B"], "errors": [None, None]}
        assert re.fullmatch(r"internal error \w{12}: see the server's log", told)
        v1 = posted(service, "/v1/translate", text=["a", "bad"], **pair).json()["translations"]
        assert [each["text"] for each in v1] == ["A", "bad"]
        assert v1[0]["error"] is None and v1[1]["error"].startswith("internal error")
        assert posted(service, "/translate", q="bad", **pair).status_code == 500
        assert posted(service, "/translate", q=["bad", "bad b"], **pair).status_code == 500


@pytest.mark.parametrize("route", ["/translate", "/v1/translate", "/detect"])
def test_many_languages_are_detected_outside_the_event_loop(route: str) -> None:
    threads = set[str]()
    with served({"en-de": shouting, "de-en": shouting}) as service:
        detect = service.detector.detect

        def recorded(text: str) -> Any:
            threads.add(threading.current_thread().name)
            return detect(text)

        service.detector.detect = recorded  # type: ignore[method-assign]
        texts = ["A dog runs in the snow .", "Ein Hund im Schnee .", "A cat ."]
        field = "text" if route == "/v1/translate" else "q"
        fields = {} if route == "/detect" else {"source": "auto", "target": "de"}
        assert posted(service, route, **{field: texts}, **fields).status_code == 200
    assert threads == {"preparing texts"}
