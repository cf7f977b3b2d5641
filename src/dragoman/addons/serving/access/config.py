"""`AccessConfig`: the settings of access control and quotas, the section `access` of `serve.yaml`."""

import re
from pathlib import Path

from pydantic import Field, field_validator

from dragoman.addons.serving.access.client_address import parse_networks
from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import Config

_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@]+")


class AccessConfig(Config):
    """Access control and quotas. The defaults suit a server without API keys."""

    keys: Path | None = Field(
        None, description="API key database (`dragoman keys`). If it is set, clients must send a key. null: no keys."
    )
    requests_per_minute: int | None = Field(
        120,
        ge=1,
        description="Limit per key, or per address if there are no keys. 120 suits a user who types and receives two "
        "translations per second. null: no limit.",
    )
    tokens_per_minute: int | None = Field(
        50_000,
        ge=1,
        description="Limit of source tokens per key, or per address if there are no keys. 50,000 tokens correspond to "
        "about 20 requests of 10,000 characters of European text, or to one request of characters that take 4 tokens "
        "each, such as emoji. A longer file is translated if the client has its full quota. Its next request then "
        "waits until the quota has refilled. null: no limit.",
    )
    loopback_quotas: bool = Field(
        False,
        description="Whether the limits also apply to programs on this machine that send no key. Requests that a proxy "
        "passes on are always limited; a proxy on this machine must therefore send X-Forwarded-For.",
    )
    max_clients: int = Field(
        65_536,
        ge=1,
        description="Maximum number of addresses to track. Each takes about 400 bytes. The least recently seen address "
        "is dropped first.",
    )
    trusted_proxies: tuple[str, ...] = Field(
        (),
        description="Networks of your own proxies, such as 127.0.0.1 or 10.0.0.0/8. X-Forwarded-For headers are "
        "trusted only from these networks.",
    )

    allowed_origins: tuple[str, ...] = Field(
        (),
        description="Origins of other sites whose pages may use the server, such as https://example.org; `*`: all. "
        "Browsers let these pages read answers (CORS). Requests that pages of other origins send are rejected.",
    )
    metrics_token: Path | None = Field(
        None,
        description="File with a token for GET /metrics, which Prometheus sends as `bearer_token_file`; null: only "
        "clients in `metrics_networks` may read the metrics.",
    )
    metrics_networks: tuple[str, ...] = Field(
        ("127.0.0.0/8", "::1"),
        description="Networks whose clients may read GET /metrics without a token. Requests through proxies that are "
        "not in `trusted_proxies` always need the token.",
    )

    @field_validator("allowed_origins")
    @classmethod
    def _are_origins(cls, texts: tuple[str, ...]) -> tuple[str, ...]:
        for text in texts:
            if text != "*" and not _ORIGIN.fullmatch(text):
                raise ValueError(f"{text!r} is not an origin: write https://example.org, without a path, or *")
        return texts

    @field_validator("trusted_proxies", "metrics_networks")
    @classmethod
    def _are_networks(cls, texts: tuple[str, ...]) -> tuple[str, ...]:
        try:
            parse_networks(texts)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return texts
