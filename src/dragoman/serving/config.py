"""`ServeConfig`: what `serve.yaml` may say."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

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


class ModelConfig(Config):
    """A model that is served."""

    path: Path = Field(description="the model folder, or one that `dragoman export` wrote")
    source: str | None = Field(None, description="code of the language that it reads; null: as its folder says")
    target: str | None = Field(None, description="code of the language that it writes; null: as its folder says")


class EngineConfig(Config):
    """What computes; as the options of `dragoman translate`."""

    name: str = Field("auto", description="auto, or an engine's name")
    precision: Literal["float32", "int8"] | None = Field(None, description="int8 is faster and rounds")
    device: str | None = Field(None, description="cpu, cuda or cuda:N; null: a GPU if there is one")
    threads: int | None = Field(
        None, ge=1, description="of each model, or of each of its workers; null: one a processor, which workers share"
    )
    workers: int = Field(
        0,
        ge=0,
        description="processes that translate by a model, a batch each, and share its weights; one that ends is "
        "replaced. 0: the server's own process translates",
    )
    worker_seconds: float = Field(
        60, gt=0, description="how long a worker may be silent over a batch until it is ended and another one begins"
    )
    worker_megabytes: int | None = Field(
        None,
        ge=1,
        description="memory that a worker may take beside what it shares: what needs more is tried in smaller batches, "
        "then answered with an error; null: any amount",
    )

    @model_validator(mode="after")
    def _limits_workers(self) -> Self:
        if self.worker_megabytes is not None and not self.workers:
            raise ValueError("worker_megabytes is a limit of workers, and there are none: set workers")
        return self


class QueueConfig(Config):
    """How lines of many clients become batches. Each model has a queue of its own."""

    batch_tokens: int = Field(2048, ge=1, description="source tokens that are translated at once, at most")
    batch_lines: int = Field(64, ge=1, description="sentences that are translated at once, at most")
    gather_milliseconds: float = Field(
        2, ge=0, description="how long a batch that has lines of several clients waits for more; a client alone waits 0"
    )
    most_tokens: int = Field(
        100_000, ge=1, description="source tokens that wait, at most; more is refused at once, with status 503"
    )
    cache_entries: int = Field(10_000, ge=0, description="sentences whose translations are remembered; 0: none")


class LimitsConfig(Config):
    """What one client may ask for. All of it holds unless `serve.yaml` says otherwise."""

    body_bytes: int = Field(1_000_000, ge=1, description="a request's body; some 100,000 words")
    characters: int = Field(10_000, ge=1, description="a request's texts together; some three printed pages")
    texts: int = Field(128, ge=1, description="texts of a list")
    beam: int = Field(8, ge=1, description="beam size; time grows with it, quality hardly beyond 5")
    alternatives: int = Field(5, ge=0, description="further translations of a text; each costs a place in the beam")
    glossary_terms: int = Field(500, ge=0, description="terms of a request's glossary")
    constraints: int = Field(10, ge=0, description="phrases that a request's translations must hold")
    seconds: float = Field(
        4.5, gt=0, description="until a request is given up with status 503; clients usually wait for 5 to 10"
    )
    file_bytes: int = Field(10_000_000, ge=1, description="a file that is to be translated")
    file_seconds: float = Field(120, gt=0, description="until a file is given up")
    kept_bytes: int = Field(
        200_000_000, ge=1, description="translated files that are kept in memory together; the oldest goes first"
    )
    kept_seconds: float = Field(600, gt=0, description="how long a translated file can be fetched")
    suggestions_bytes: int = Field(100_000_000, ge=1, description="the file of suggestions; then none are taken")
    body_seconds: float = Field(10, gt=0, description="until a client has to have sent its request's body")
    connections: int = Field(1000, ge=1, description="open connections; more are refused with status 503")


class ServeConfig(Config):
    """Of `dragoman serve`."""

    host: str = Field("127.0.0.1", description="address to listen at; 0.0.0.0 is every address of the machine")
    port: int = Field(5000, ge=0, le=65535, description="0: any that is free")
    models: tuple[ModelConfig, ...] = Field((), description="what is served")
    pivots: tuple[str, ...] = Field(
        ("en",), description="languages through which others may be translated where no model does it, best first"
    )
    log: bool = Field(True, description="a line of JSON for each request, on stderr, without texts and keys")
    suggestions: Path | None = Field(
        None,
        description="file of JSON Lines to which translations that clients propose are added; null: none are taken",
    )
    reload_seconds: float = Field(10, ge=0, description="how often model folders are looked at for changes; 0: never")
    engine: EngineConfig = Field(EngineConfig(), description="What computes.")
    queue: QueueConfig = Field(QueueConfig(), description="How batches are formed.")
    access: AccessConfig = Field(AccessConfig(), description="Who may ask, and how much.")
    limits: LimitsConfig = Field(LimitsConfig(), description="What one client may ask for.")
