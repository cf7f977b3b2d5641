"""The routes /v1/completions and /v1/models, in the form of OpenAI's API reference."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from scripted_server import asked
from served_models import served_models
from tiny_language_model import write_tiny_language_model
from tiny_predictor import write_predictor
from waiting import PATIENCE

from dragoman import Client, LanguageModel
from dragoman.addons.serving.client import ServerError
from dragoman.addons.serving.config import EngineConfig, ModelConfig
from dragoman.addons.serving.models.served_language_models import ServedLanguageModel
from dragoman.addons.serving.service.service import Service
from dragoman.base.errors import ConfigError
from dragoman.inference.generation.writer import Piece, Writer
from dragoman.metrics.text_score import TextScore

PROMPT = "a dog"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "lm"
    write_tiny_language_model(folder, block=64)
    return folder


@pytest.fixture(scope="module")
def limited(folder: Path) -> Iterator[Service]:
    limits = {"completion_tokens": 32, "completions": 4, "characters": 100}
    with served_models({"lm": folder}, limits=limits) as service:
        yield service


@pytest.fixture(scope="module")
def model(folder: Path) -> LanguageModel:
    return LanguageModel.load(folder, "cpu")


def completed(service: Service, **body: Any) -> httpx.Response:
    return asked(service, lambda client: client.post("/v1/completions", json=body))  # type: ignore[no-any-return]


def events(response: httpx.Response) -> list[Any]:
    """The data of server-sent events, as the HTML standard divides them."""
    assert response.headers["content-type"].startswith("text/event-stream")
    *blocks, rest = response.text.split("\n\n")
    assert rest == "" and all(block.startswith("data: ") and "\n" not in block for block in blocks)
    assert blocks.pop() == "data: [DONE]"
    return [json.loads(block.removeprefix("data: ")) for block in blocks]


def test_the_form_of_an_answer(folder: Path, model: LanguageModel) -> None:
    with served_models({"lm": folder}) as service:
        answer = completed(service, model="lm", prompt=PROMPT, max_tokens=6, temperature=0).json()
        default = completed(service).json()
    assert set(answer) == {"id", "object", "created", "model", "choices", "usage"}
    assert answer["object"] == "text_completion" and answer["model"] == "lm" and answer["id"].startswith("cmpl-")
    (choice,) = answer["choices"]
    assert choice == {
        "text": model.generate([PROMPT], top_k=1, max_tokens=6)[0],
        "index": 0,
        "logprobs": None,
        "finish_reason": "length",
    }
    read = len(model.tokenizer.encode(PROMPT))
    assert answer["usage"] == {"prompt_tokens": read, "completion_tokens": 6, "total_tokens": read + 6}
    assert 1 <= default["usage"]["completion_tokens"] <= 16 and default["usage"]["prompt_tokens"] == 0


def test_samples_equal_those_of_the_model(folder: Path, model: LanguageModel) -> None:
    settings: dict[str, Any] = {"temperature": 1.3, "top_p": 0.9, "seed": 7, "max_tokens": 9}
    expected = model.generate([PROMPT, "Two"], samples=2, **settings)
    with served_models({"lm": folder}) as service:
        choices = completed(service, prompt=[PROMPT, "Two"], n=2, **settings).json()["choices"]
        ids = [model.tokenizer.encode(each) for each in (PROMPT, "Two")]
        others = completed(service, prompt=ids, n=2, **settings).json()["choices"]
        drawn = {completed(service, prompt=PROMPT, max_tokens=30).json()["choices"][0]["text"] for _ in range(3)}
    assert [each["text"] for each in choices] == expected == [each["text"] for each in others]
    assert [each["index"] for each in choices] == [0, 1, 2, 3]
    assert len(drawn) > 1  # without a seed, samples differ


def test_log_probabilities_of_prompts_and_completions(folder: Path, model: LanguageModel) -> None:
    """Their sum is the log-probability of the text, which forced decoding computes."""
    with served_models({"lm": folder}) as service:
        settings: dict[str, Any] = {"temperature": 0, "max_tokens": 5, "echo": True, "logprobs": 3}
        (choice,) = completed(service, prompt=PROMPT, **settings).json()["choices"]
        (only,) = completed(service, prompt=PROMPT, **{**settings, "max_tokens": 0}).json()["choices"]
    found = choice["logprobs"]
    assert len({len(found[name]) for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset")}) == 1
    assert choice["text"].startswith(PROMPT)
    ids = model.tokenizer.encode(PROMPT)
    assert only["text"] == PROMPT and "".join(only["logprobs"]["tokens"]).lstrip() == PROMPT
    assert only["finish_reason"] == "length" and len(only["logprobs"]["tokens"]) == len(ids)
    assert only["logprobs"]["text_offset"][0] == 0
    score: TextScore = model.score([PROMPT])[0]
    ending = model.token_scores([*ids, 2])[-1].log_probability or 0.0  # the end symbol, which the score includes
    assert sum(only["logprobs"]["token_logprobs"]) + ending == pytest.approx(score.log_probability, abs=1e-4)
    for top, token, value in zip(found["top_logprobs"], found["tokens"], found["token_logprobs"], strict=True):
        # of distinct tokens, two may have the same bytes as their text
        assert len(top) <= 3 and max(top.values()) >= value - 1e-5
        assert token not in top or top[token] >= value - 1e-5
    greedy = list(zip(found["top_logprobs"], found["token_logprobs"], strict=True))[len(ids) :]
    assert all(max(top.values()) == pytest.approx(value, abs=1e-5) for top, value in greedy)


def test_streams_equal_whole_answers(folder: Path) -> None:
    body: dict[str, Any] = {"prompt": [PROMPT, ""], "n": 2, "seed": 3, "max_tokens": 12, "logprobs": 1, "echo": True}
    with served_models({"lm": folder}) as service:
        whole = completed(service, **body).json()
        parts = events(completed(service, **body, stream=True, stream_options={"include_usage": True}))
        plain = events(completed(service, **body, stream=True))
    assert parts[-1]["choices"] == [] and parts[-1]["usage"] == whole["usage"]
    assert all(each["usage"] is None for each in parts[:-1]) and len(plain) == len(parts) - 1
    assert len({each["id"] for each in parts}) == 1
    for expected in whole["choices"]:
        own = [each["choices"][0] for each in parts[:-1] if each["choices"][0]["index"] == expected["index"]]
        assert "".join(each["text"] for each in own) == expected["text"]
        assert [each["finish_reason"] for each in own] == [None] * (len(own) - 1) + [expected["finish_reason"]]
        for name, values in expected["logprobs"].items():
            assert [value for each in own for value in each["logprobs"][name]] == values


def test_stop_strings_and_their_tokens(folder: Path) -> None:
    body: dict[str, Any] = {"prompt": PROMPT, "seed": 4, "max_tokens": 40, "logprobs": 0}
    with served_models({"lm": folder}) as service:
        (whole,) = completed(service, **body).json()["choices"]
        stop = whole["text"][5:8]
        end = whole["text"].index(stop)
        (stopped,) = completed(service, **body, stop=["not there", stop]).json()["choices"]
        parts = [each["choices"][0] for each in events(completed(service, **body, stop=stop, stream=True))]
    assert stopped["text"] == whole["text"][:end] == "".join(each["text"] for each in parts)
    assert stopped["finish_reason"] == "stop" == parts[-1]["finish_reason"]
    offsets = [each for each in whole["logprobs"]["text_offset"] if each < end]
    assert stopped["logprobs"]["text_offset"] == offsets
    assert [offset for each in parts for offset in each["logprobs"]["text_offset"]] == offsets


def test_the_best_of_several(folder: Path) -> None:
    body: dict[str, Any] = {"prompt": PROMPT, "seed": 4, "max_tokens": 9, "logprobs": 0, "temperature": 1.5}
    with served_models({"lm": folder}) as service:
        all_choices = completed(service, **body, n=6).json()["choices"]
        best = completed(service, **body, n=2, best_of=6).json()
    means = {each["text"]: sum(each["logprobs"]["token_logprobs"]) / 9 for each in all_choices}
    assert [each["text"] for each in best["choices"]] == sorted(means, key=lambda text: -means[text])[:2]
    assert [each["index"] for each in best["choices"]] == [0, 1] and best["usage"]["completion_tokens"] == 54


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({"model": "none"}, 404, "model"),
        ({"max_tokens": 33}, 400, "max_tokens"),
        ({"n": 5}, 400, "n"),
        ({"prompt": ["a"] * 3, "n": 2}, 400, "n"),
        ({"best_of": 1, "n": 2}, 400, "n"),
        ({"best_of": 2, "stream": True}, 400, "best_of"),
        ({"prompt": "a" * 101}, 400, "prompt"),
        ({"prompt": []}, 400, "prompt"),
        ({"prompt": [1, 10**6]}, 400, "prompt"),
        ({"prompt": [-1]}, 400, "prompt"),
        ({"prompt": "a" * 90, "echo": True, "logprobs": 1}, 400, "prompt"),
        ({"prompt": 7}, 400, "prompt"),
        ({"stop": ["a", ""]}, 400, "stop"),
        ({"stop": ["a"] * 5}, 400, "stop"),
        ({"logprobs": 6}, 400, "logprobs"),
        ({"temperature": -1}, 400, "temperature"),
        ({"top_p": 0}, 400, "top_p"),
        ({"seed": -1}, 400, "seed"),
        ({"frequency_penalty": 0.5}, 400, "frequency_penalty"),
        ({"logit_bias": {"50256": -100}}, 400, "logit_bias"),
        ({"suffix": "end"}, 400, "suffix"),
        ({"messages": []}, 400, "messages"),
    ],
)
def test_errors_have_the_form_of_openai(limited: Service, body: dict[str, Any], status: int, param: str) -> None:
    answer = completed(limited, **body)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"} and error["type"] == "invalid_request_error"
    assert error["param"] == param and error["message"]


def test_neutral_values_of_unsupported_fields_are_accepted(folder: Path) -> None:
    neutral = {"frequency_penalty": 0, "presence_penalty": 0.0, "logit_bias": {}, "suffix": None, "user": "me"}
    with served_models({"lm": folder}) as service:
        assert completed(service, prompt="a", max_tokens=1, **neutral).status_code == 200


def test_the_list_of_models(folder: Path, tmp_path: Path) -> None:
    with served_models({"a/lm": folder, "labels": write_predictor(tmp_path / "labels", "requests")}) as service:

        async def work(client: httpx.AsyncClient) -> list[httpx.Response]:
            paths = ("/v1/models", "/v1/models/a/lm", "/v1/models/none", "/v1/models/", "/v1/completions")
            return [await client.get(path) for path in paths]

        listed, one, unknown, same, wrong = asked(service, work)
    content = listed.json()
    assert content["object"] == "list" and content == same.json()
    assert [each["id"] for each in content["data"]] == ["labels", "a/lm"]
    assert content["models"][1] == {"name": "a/lm", "kind": "language_model", "window": 64}
    assert one.json() == content["data"][1] and set(one.json()) == {"id", "object", "created", "owned_by"}
    assert unknown.status_code == 404 and unknown.json()["error"]["code"] == "model_not_found"
    assert wrong.status_code == 405 and wrong.json()["error"]["message"] == "Method Not Allowed"


def test_quotas_count_prompts_and_what_was_generated(folder: Path) -> None:
    access = {"tokens_per_minute": 40, "requests_per_minute": 10, "loopback_quotas": True}
    with served_models({"lm": folder}, access=access) as service:

        async def work(client: httpx.AsyncClient) -> list[httpx.Response]:
            body = {"prompt": PROMPT, "max_tokens": 15, "temperature": 0}
            return [await client.post("/v1/completions", json=body) for _ in range(3)]

        answers = asked(service, work)
    assert [each.status_code for each in answers] == [200, 200, 429]
    assert answers[2].headers["retry-after"] and answers[2].json()["error"]["code"] == "rate_limit_exceeded"


def test_metrics_count_tokens(folder: Path) -> None:
    with served_models({"lm": folder}) as service:
        completed(service, prompt=PROMPT, max_tokens=5, n=2, temperature=0)
        text = service.metrics.text().decode()  # type: ignore[attr-defined]
    for line in (
        'dragoman_completions_total{model="lm"} 2.0',
        'dragoman_generated_tokens_total{model="lm"} 10.0',
        'dragoman_source_tokens_total{model="lm"} 2.0',
    ):
        assert line in text


def test_a_full_queue_and_a_slow_completion(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original, answered = Writer.write, threading.Event()

    def slowly(self: Writer, *arguments: Any, **options: Any) -> Any:
        assert answered.wait(PATIENCE)
        return original(self, *arguments, **options)

    monkeypatch.setattr(Writer, "write", slowly)
    limits = {"completion_seconds": 0.5}
    with served_models({"lm": folder}, queue={"max_tokens": 30}, limits=limits) as service:

        async def work(client: httpx.AsyncClient) -> list[httpx.Response]:
            bodies = ({"max_tokens": 20, "stream": stream} for stream in (False, True))
            answers = await asyncio.gather(*(client.post("/v1/completions", json=body) for body in bodies))
            answered.set()
            return list(answers)

        answers = asked(service, work)
    assert {each.status_code for each in answers} == {503}
    assert {each.json()["error"]["message"] for each in answers} == {
        "the queue is full: try again later",
        "the completion took longer than 0.5 seconds",
    }


def test_an_error_after_the_start_of_a_stream_is_its_last_event(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def failing(self: Writer, *arguments: Any, **options: Any) -> Any:
        yield Piece(0, "A text")
        raise ValueError("a bug")

    monkeypatch.setattr(Writer, "write", failing)
    monkeypatch.setattr("dragoman.addons.serving.service.completion_queue._SLICE_SECONDS", 0.0)
    with served_models({"lm": folder}) as service:
        answer = completed(service, prompt=PROMPT, stream=True)
    first, last = [json.loads(each.removeprefix("data: ")) for each in answer.text.split("\n\n") if each]
    assert first["choices"][0]["text"] == "A text" and last["error"]["type"] == "server_error"
    assert "internal error" in last["error"]["message"] and "a bug" not in answer.text


def test_short_requests_are_not_delayed_by_long_ones(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients take turns after each slice of time, here after each token."""
    monkeypatch.setattr("dragoman.addons.serving.service.completion_queue._SLICE_SECONDS", 0.0)
    access = {"trusted_proxies": ["127.0.0.1"], "requests_per_minute": None, "tokens_per_minute": None}
    with served_models({"lm": folder}, access=access) as service:
        finished: list[int] = []

        async def work(client: httpx.AsyncClient) -> None:
            async def post(tokens: int, address: str) -> None:
                body = {"prompt": PROMPT, "max_tokens": tokens, "temperature": 0}
                answer = await client.post("/v1/completions", json=body, headers={"X-Forwarded-For": address})
                assert answer.json()["usage"]["completion_tokens"] == tokens
                finished.append(tokens)

            long = asyncio.ensure_future(post(60, "192.0.2.1"))
            await asyncio.sleep(0)
            await asyncio.gather(long, post(3, "192.0.2.2"))

        asked(service, work)
    assert finished == [3, 60]


def test_a_changed_folder_is_reloaded(folder: Path, tmp_path: Path) -> None:
    write_tiny_language_model(tmp_path / "m")
    served = ServedLanguageModel(ModelConfig(path=tmp_path / "m"), EngineConfig(device="cpu"), "m")
    before = served.model
    assert not served.reload() and served.model is before
    for path in (tmp_path / "m").iterdir():
        path.unlink()
    write_tiny_language_model(tmp_path / "m", seed=2)
    assert served.reload() and served.model is not before
    with pytest.raises(ConfigError, match="remove `source` and `target`"):
        ServedLanguageModel(ModelConfig(path=folder, source="en", target="de"), EngineConfig(device="cpu"), "m")


def test_the_client_reads_messages_in_the_form_of_openai(folder: Path) -> None:
    with served_models({"lm": folder}) as service:
        answer = completed(service, model="none")
    client = Client("http://server")
    with pytest.raises(ServerError, match="there is no language model of this name: this server has lm"):
        client._parse_response(answer)
