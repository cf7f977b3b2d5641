"""`AccessConfig`: who may ask a server, and how much."""

from pathlib import Path

from pydantic import Field, field_validator

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import Config
from dragoman.serving.access.client_address import networks


class AccessConfig(Config):
    """Who may ask, and how much. The defaults are for a server without keys."""

    keys: Path | None = Field(
        None, description="database of API keys (`dragoman keys`): every route needs one; null: no keys"
    )
    requests_per_minute: int | None = Field(
        120,
        ge=1,
        description="of a key, or of an address where there are no keys; 120 is somebody who types and is answered "
        "twice a second; null: any number",
    )
    tokens_per_minute: int | None = Field(
        50_000,
        ge=1,
        description="source tokens of a key, or of an address; 50,000 are some 20 requests of 10,000 characters of "
        "European text, or one in which each character takes 4 tokens, as emoji do; null: any number",
    )
    most_clients: int = Field(
        65_536, ge=1, description="addresses that are remembered, some 400 bytes each; the one seen longest ago goes"
    )
    trusted_proxies: tuple[str, ...] = Field(
        (),
        description="networks of your own proxies, such as 127.0.0.1 or 10.0.0.0/8: only what they say in "
        "X-Forwarded-For is believed",
    )

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, texts: tuple[str, ...]) -> tuple[str, ...]:
        try:
            networks(texts)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return texts
