"""Requests from pages of other sites, and who may read the metrics."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from scripted_server import FREE, asked, served, shouting

from dragoman.addons.serving.access.access import Access
from dragoman.addons.serving.config import ServeConfig
from dragoman.addons.serving.http.application import Application
from dragoman.addons.serving.http.metrics import Metrics
from dragoman.base.errors import ConfigError

PAIR = {"source": "en", "target": "de"}


def statuses(service: Any, route: str = "/translate", **headers: str) -> int:
    fields = {"q": "a", "s": "b", "text": "a", **PAIR}
    if route == "/v1/translate":
        del fields["q"], fields["s"]
    answer = asked(
        service,
        lambda client: client.post(route, json=fields, headers={k.replace("_", "-"): v for k, v in headers.items()}),
    )
    assert answer.status_code == 200 or list(answer.json()) == ["error"]
    return int(answer.status_code)


@pytest.mark.parametrize(
    ("headers", "accepted"),
    [
        ({}, True),
        ({"Origin": "http://server"}, True),
        ({"Origin": "http://SERVER:80"}, True),
        ({"Origin": "https://server"}, True),  # a proxy terminates TLS
        ({"Origin": "http://server", "Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Origin": "https://public.example", "Sec-Fetch-Site": "same-origin"}, True),  # a proxy changed the host
        ({"Origin": "http://evil.example"}, False),
        ({"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Origin": "http://server", "Sec-Fetch-Site": "cross-site"}, False),
        ({"Origin": "http://other.server", "Sec-Fetch-Site": "same-site"}, False),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Origin": "http://server:8080"}, False),
        ({"Origin": "http://server.evil.example"}, False),
        ({"Origin": "http://server@evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": ""}, False),
        ({"Origin": "http://[::1"}, False),
    ],
)
def test_pages_of_other_origins_are_rejected_on_every_route(
    headers: dict[str, str], accepted: bool, tmp_path: Path
) -> None:
    path, fields = tmp_path / "suggestions.jsonl", {"q": "a", "s": "b", **PAIR}

    async def work(client: httpx.AsyncClient) -> list[int]:
        client.headers.update(headers)
        answers = [
            await client.post("/translate", json=fields),
            await client.post("/v1/translate", json={"text": "a", **PAIR}),
            await client.post("/detect", json=fields),
            await client.post("/suggest", data=fields),
            await client.post("/suggest", params=fields),
            await client.get("/languages"),
            await client.post("/translate_file"),
        ]
        assert all(list(answer.json()) == ["error"] for answer in answers if answer.status_code >= 400)
        return [answer.status_code for answer in answers]

    with served({"en-de": shouting}, suggestions=path) as service:
        found = asked(service, work)
    assert found == ([200] * 6 + [400] if accepted else [403] * 5 + [200, 403])
    assert path.read_text().count("\n") == (2 if accepted else 0)


def test_the_public_host_behind_a_trusted_proxy_is_the_servers_own() -> None:
    forwarded = {"Origin": "https://a.example", "X-Forwarded-Host": "a.example", "X-Forwarded-Proto": "https"}
    with served({"en-de": shouting}, access={**FREE, "trusted_proxies": ["127.0.0.1"]}) as service:
        assert statuses(service, **forwarded) == 200
        assert statuses(service, **{**forwarded, "X-Forwarded-Prefix": "/translate"}) == 200
        assert statuses(service, **{**forwarded, "Origin": "https://b.example"}) == 403
    with served({"en-de": shouting}) as service:
        assert statuses(service, **forwarded) == 403, "the proxy is not trusted"
    with served({"en-de": shouting}, public_url="https://a.example/mt/") as service:
        assert statuses(service, Origin="https://a.example") == 200


def test_allowed_origins_receive_cors_headers() -> None:
    with served({"en-de": shouting}, access={**FREE, "allowed_origins": ["https://a.example"]}) as service:
        assert statuses(service, Origin="https://a.example", Sec_Fetch_Site="cross-site") == 200
        assert statuses(service, Origin="https://b.example", Sec_Fetch_Site="cross-site") == 403

        async def preflight(client: httpx.AsyncClient) -> list[httpx.Response]:
            asked_for = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
            return [
                await client.options("/translate", headers={"Origin": origin, **asked_for})
                for origin in ("https://a.example", "https://b.example")
            ]

        allowed, other = asked(service, preflight)
        assert allowed.headers["access-control-allow-origin"] == "https://a.example"
        assert "access-control-allow-origin" not in other.headers
    with served({"en-de": shouting}, access={**FREE, "allowed_origins": ["*"]}) as service:
        assert statuses(service, Origin="null", Sec_Fetch_Site="cross-site") == 200
    with served({"en-de": shouting}) as service:
        assert "access-control-allow-origin" not in asked(service, preflight)[0].headers
    with pytest.raises(ValueError, match="not an origin"):
        ServeConfig.model_validate({"access": {"allowed_origins": ["a.example"]}})


@pytest.mark.parametrize(
    ("peer", "headers", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("::1", {}, 200),
        ("::ffff:127.0.0.1", {}, 200),
        ("10.0.0.7", {}, 401),
        ("10.0.0.7", {"Authorization": "Bearer 0123456789abcdef"}, 200),
        ("10.0.0.7", {"Authorization": "Bearer 0123456789abcdeF"}, 403),
        ("10.0.0.7", {"X-Forwarded-For": "127.0.0.1"}, 401),
        ("127.0.0.1", {"X-Forwarded-For": "10.0.0.7"}, 401),
        ("127.0.0.1", {"X-Forwarded-For": "127.0.0.1"}, 401),
        ("127.0.0.1", {"Via": "1.1 proxy"}, 401),
        ("127.0.0.1", {"Forwarded": "for=127.0.0.1"}, 401),
        ("127.0.0.1", {"X-Real-IP": "127.0.0.1"}, 401),
        ("127.0.0.1", {"CF-Connecting-IP": "10.0.0.7"}, 401),
        ("127.0.0.1", {"True-Client-IP": "10.0.0.7"}, 401),
        ("127.0.0.1", {"X-Forwarded-Port": "443"}, 401),
        ("127.0.0.1", {"X-Amzn-Trace-Id": "Root=1"}, 401),
        ("127.0.0.1", {"X-Request-ID": "1", "User-Agent": "Prometheus/3.0", "Accept-Encoding": "gzip"}, 200),
    ],
)
def test_metrics_need_a_token_or_the_loopback_address(
    peer: str, headers: dict[str, str], status: int, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef\n")
    with served({"en-de": shouting}, access={**FREE, "metrics_token": token}) as service:
        config = service.config  # type: ignore[attr-defined]
        app = Application(service, Access(config.access), config, Metrics())

        async def read(_: httpx.AsyncClient) -> httpx.Response:
            transport = httpx.ASGITransport(app, client=(peer, 1))
            async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
                return await client.get("/metrics", headers=headers)

        answer = asked(service, read)
        assert answer.status_code == status and ("dragoman_requests" in answer.text) == (status == 200)
        assert "0123456789abcdef" not in answer.text


def test_a_token_file_must_contain_a_long_token(tmp_path: Path) -> None:
    (tmp_path / "short").write_text("secret\n")
    for name, told in {"missing": "cannot read", "short": "at least 16 characters"}.items():
        with (
            pytest.raises(ConfigError, match=told),
            served({"en-de": shouting}, access={**FREE, "metrics_token": tmp_path / name}) as service,
        ):
            asked(service, lambda client: client.get("/health"))
