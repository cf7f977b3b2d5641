"""Links in answers lead to the address under which the client has reached the server, also through proxies."""

import pytest
from pydantic import ValidationError
from starlette.requests import Request

from dragoman.addons.serving.config import ServeConfig
from dragoman.addons.serving.http.public_url import PublicUrl

PROXY = {"access": {"trusted_proxies": ["127.0.0.1", "10.0.0.0/8"]}}


def base(headers: dict[str, str], peer: str = "127.0.0.1", **settings: object) -> str:
    scope = {
        "type": "http",
        "scheme": "http",
        "method": "GET",
        "path": "/translate_file",
        "query_string": b"",
        "headers": [(key.lower().encode(), value.encode()) for key, value in headers.items()],
        "client": (peer, 1234),
        "server": ("127.0.0.1", 5000),
    }
    return PublicUrl(ServeConfig.model_validate({**PROXY, **settings})).base(Request(scope))


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, "http://127.0.0.1:5000/"),
        ({"Host": "example.org:8080"}, "http://example.org:8080/"),
        (
            {"Host": "a:1", "X-Forwarded-Host": "example.org:8443", "X-Forwarded-Proto": "https"},
            "https://example.org:8443/",
        ),
        ({"Host": "a:1", "X-Forwarded-Host": "b", "X-Forwarded-Port": "8080"}, "http://b:8080/"),
        ({"Host": "a:1", "X-Forwarded-Host": "b:7", "X-Forwarded-Port": "8080"}, "http://b:7/"),
        ({"Host": "a", "X-Forwarded-Proto": "https", "X-Forwarded-Port": "443"}, "https://a/"),
        ({"Host": "a", "X-Forwarded-Prefix": "/mt"}, "http://a/mt/"),
        ({"Host": "a", "X-Forwarded-Prefix": "/mt/x/"}, "http://a/mt/x/"),
        ({"Host": "a", "X-Forwarded-Prefix": "/"}, "http://a/"),
        ({"Host": "a", "X-Forwarded-Host": "evil.example, b"}, "http://b/"),
        ({"Host": "a", "X-Forwarded-Host": "[2001:db8::1]:80"}, "http://[2001:db8::1]:80/"),
        ({"Host": "a", "X-Forwarded-Host": "b/c@d", "X-Forwarded-Proto": "javascript"}, "http://a/"),
        ({"Host": "a", "X-Forwarded-Prefix": "//evil.example", "X-Forwarded-Port": "x"}, "http://a/"),
    ],
)
def test_headers_of_a_trusted_proxy(headers: dict[str, str], expected: str) -> None:
    assert base(headers) == expected
    assert base(headers, "::ffff:10.1.2.3") == expected


def test_headers_of_others_are_ignored() -> None:
    forged = {"Host": "a", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https", "X-Forwarded-Prefix": "/x"}
    for peer in ("192.0.2.1", "::1", "", "a name"):
        assert base(forged, peer) == "http://a/"


def test_the_setting_has_precedence() -> None:
    for given in ("https://example.org/mt", "https://example.org/mt/"):
        assert base({"X-Forwarded-Host": "b"}, public_url=given) == "https://example.org/mt/"
    for wrong in ("example.org", "ftp://a", "https://", "https://a?b", "https://a b"):
        with pytest.raises(ValidationError):
            base({}, public_url=wrong)
