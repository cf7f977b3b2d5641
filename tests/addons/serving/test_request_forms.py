"""Every form of request that LibreTranslate accepts, on every route."""

import gzip
import json
from typing import Any

import httpx
import pytest
from scripted_server import asked, posted, served, shouting

PAIR = {"source": "en", "target": "de"}
BODY = json.dumps({"q": "a", **PAIR})


@pytest.fixture(scope="module")
def service() -> Any:
    with served({"en-de": shouting}) as found:
        yield found


def sent(service: Any, method: str, path: str, **arguments: Any) -> httpx.Response:
    return asked(service, lambda client: client.request(method, path, **arguments))  # type: ignore[no-any-return]


def parts(**fields: str) -> dict[str, Any]:
    return {name: (None, value) for name, value in fields.items()}


@pytest.mark.parametrize(
    "arguments",
    [
        {"json": {"q": "a", **PAIR, "api_key": None, "format": None, "alternatives": None}},
        {"json": {"q": "a", **PAIR, "api_key": "", "format": "", "alternatives": "", "secret": "x", "other": [1]}},
        {"json": {"q": "a", **PAIR, "alternatives": "0"}},
        {"json": {"q": "a", "source": "EN", "target": "de_DE"}},
        {"json": {"q": "a", "source": "en-US", "target": "DE"}},
        {"data": {"q": "a", **PAIR, "api_key": "", "secret": ""}},
        {"files": parts(q="a", **PAIR, format="text", alternatives="0", api_key="", secret="")},
        {"files": {**parts(q="a", **PAIR), "file": ("a.txt", b"b")}},
        {"params": {"q": "a", **PAIR}},
        {"params": {"source": "en"}, "data": {"q": "a", "target": "de"}},
        {"params": {"api_key": "x"}, "json": {"q": "a", **PAIR}},
        {"params": {"q": "a", **PAIR}, "headers": {"content-type": "application/json"}},
        {"content": BODY},
        {"content": "q=a&source=en&target=de"},
        {"content": BODY, "headers": {"content-type": "application/json; charset=UTF-8"}},
        {"content": BODY, "headers": {"content-type": "application/vnd.api+json"}},
        {"content": f"\ufeff{BODY}".encode(), "headers": {"content-type": "application/json"}},
        {"content": BODY.encode("utf-16"), "headers": {"content-type": "application/json;charset=utf-16"}},
    ],
)
def test_a_text(service: Any, arguments: dict[str, Any]) -> None:
    answer = sent(service, "POST", "/translate", **arguments)
    assert (answer.status_code, answer.json()) == (200, {"translatedText": "A"})


@pytest.mark.parametrize("path", ["/translate/", "/translate//", "http://server//translate"])
def test_slashes_that_clients_add_are_ignored(service: Any, path: str) -> None:
    assert sent(service, "POST", path, json={"q": "a", **PAIR}).json() == {"translatedText": "A"}


@pytest.mark.parametrize(
    "arguments",
    [
        {"json": {"q": ["a", "b"], **PAIR}},
        {"data": {"q": ["a", "b"], **PAIR}},
        {"data": {"q[]": ["a", "b"], **PAIR}},
        {"files": [("q", (None, "a")), ("q", (None, "b")), *parts(**PAIR).items()]},
        {"params": {"q": ["a", "b"], **PAIR}},
    ],
)
def test_several_texts(service: Any, arguments: dict[str, Any]) -> None:
    assert sent(service, "POST", "/translate", **arguments).json() == {"translatedText": ["A", "B"]}


def test_other_encodings_of_a_form(service: Any) -> None:
    latin = {"content-type": "application/x-www-form-urlencoded; charset=ISO-8859-1"}
    answer = sent(service, "POST", "/translate", content=b"q=%E4&source=en&target=de", headers=latin)
    assert answer.json() == {"translatedText": "Ä"}
    for name in ("punycode", "zlib", "none", "a\x01"):
        headers = {"content-type": f"application/x-www-form-urlencoded; charset={name}"}
        answer = sent(service, "POST", "/translate", content=b"q=a&source=en&target=de", headers=headers)
        assert answer.status_code == 400 and "character set" in answer.json()["error"]


def test_a_compressed_body_is_rejected_by_name(service: Any) -> None:
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    answer = sent(service, "POST", "/translate", content=gzip.compress(BODY.encode()), headers=headers)
    assert answer.status_code == 400 and "Content-Encoding" in answer.json()["error"]
    headers["Content-Encoding"] = "identity"
    assert sent(service, "POST", "/translate", content=BODY, headers=headers).json() == {"translatedText": "A"}


@pytest.mark.parametrize("field", ["constraints", "glossary"])
@pytest.mark.parametrize("form", ["", "  ", "a\nb"])
def test_an_invalid_phrase_is_reported_by_its_field(service: Any, field: str, form: str) -> None:
    for value in [[form], [["b", form]]] if field == "constraints" else [{form: "b"}, {"b": form}, {"b": ["a", form]}]:
        answer = posted(service, "/v1/translate", text="a", **PAIR, **{field: value})
        told = f"Invalid request: {field}: a phrase must be a single line and must not be blank"
        assert (answer.status_code, answer.json()) == (400, {"error": told})


def test_other_routes_accept_the_same_forms(service: Any) -> None:
    for arguments in (
        {"json": {"q": "a dog runs", "api_key": None}},
        {"data": {"q": "a dog runs"}},
        {"files": parts(q="a dog runs")},
        {"params": {"q": "a dog runs"}},
        {"json": {"q": ["a dog", "runs"]}},
    ):
        found = sent(service, "POST", "/detect", **arguments)
        assert found.status_code == 200 and found.json()[0]["language"] == "en"
    texts = {"text": ["a", "b"], "target": "de", "source": "en"}
    nulls = dict.fromkeys(("api_key", "beam", "format", "glossary", "constraints", "keep", "guard", "stream", "nbest"))
    for arguments in (
        {"json": {**texts, **nulls}},
        {"data": {**texts, "beam": "2", "keep": "url", "guard": "false", "glossary": '{"x": null}'}},
        {"files": [("text", (None, "a")), ("text", (None, "b")), *parts(**PAIR).items()]},
    ):
        found = sent(service, "POST", "/v1/translate", **arguments).json()
        assert [each["text"] for each in found["translations"]] == ["A", "B"]
    for fields in ({"api_key": ""}, {"api_key": None}, {}):
        assert posted(service, "/v1/translate", text="a", target="de", source=None, **fields).status_code == 200
    wrong = posted(service, "/v1/translate", text="a", target="de", unknown=1)
    assert wrong.status_code == 400 and "unknown" in wrong.json()["error"]


def test_a_required_field_that_is_null_or_empty_is_missing(service: Any) -> None:
    for name in ("q", "source", "target"):
        for value in (None, *([""] if name != "q" else [])):
            answer = posted(service, "/translate", **{"q": "a", **PAIR, name: value})
            assert answer.status_code == 400 and answer.json() == {
                "error": f"Invalid request: missing {name} parameter"
            }


def test_monitors_and_clients(service: Any) -> None:
    for path in ("/", "/health", "/health/", "/languages", "/languages/", "/frontend/settings", "/spec", "/metrics"):
        got, head = (sent(service, method, path) for method in ("GET", "HEAD"))
        assert got.status_code == head.status_code == 200 and got.content and not head.content
        assert head.headers["content-length"] == got.headers["content-length"] or path == "/metrics"
    json_header = {"content-type": "application/json"}
    assert sent(service, "GET", "/languages", headers=json_header).json()[0]["code"] == "en"
    assert sent(service, "HEAD", "/nothing").status_code == 404
    for path, allowed in {"/translate": "OPTIONS, POST", "/languages/": "GET, HEAD, OPTIONS"}.items():
        answer = sent(service, "OPTIONS", path)
        assert answer.status_code == 204 and answer.headers["allow"] == allowed
        assert "access-control-allow-origin" not in answer.headers
    assert sent(service, "OPTIONS", "/nothing").status_code == 404
    wrong = sent(service, "GET", "/translate")
    assert wrong.status_code == 405 and list(wrong.json()) == ["error"]
