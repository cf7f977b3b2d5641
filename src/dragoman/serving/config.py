"""`ServeConfig`: the settings of a server, in `serve.yaml`."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import Config
from dragoman.serving.access.client_address import networks


class AccessConfig(Config):
    """Access control and quotas. The defaults suit a server without API keys."""

    keys: Path | None = Field(
        None, description="Database of API keys (`dragoman keys`); every route then requires a key. null: no keys."
    )
    requests_per_minute: int | None = Field(
        120,
        ge=1,
        description="Limit per key, or per address if there are no keys. 120 corresponds to a user who types and gets "
        "two answers per second. null: no limit.",
    )
    tokens_per_minute: int | None = Field(
        50_000,
        ge=1,
        description="Limit of source tokens per key, or per address. 50,000 correspond to about 20 requests of 10,000 "
        "characters of European text, or to one request if each character takes 4 tokens, as emoji do. "
        "null: no limit.",
    )
    most_clients: int = Field(
        65_536,
        ge=1,
        description="Maximum number of addresses that are tracked, about 400 bytes each; the least recently seen is "
        "dropped.",
    )
    trusted_proxies: tuple[str, ...] = Field(
        (),
        description="Networks of your own proxies, such as 127.0.0.1 or 10.0.0.0/8. X-Forwarded-For is trusted only "
        "from these.",
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
    """A model to serve."""

    path: Path = Field(description="Model folder, or a folder written by `dragoman export`.")
    source: str | None = Field(None, description="Code of the source language; null: as the folder says.")
    target: str | None = Field(None, description="Code of the target language; null: as the folder says.")


class EngineConfig(Config):
    """Inference engine; the same options as in `dragoman translate`."""

    name: str = Field("auto", description="Name of an engine, or auto.")
    precision: Literal["float32", "float16", "bfloat16", "int8"] | None = Field(
        None,
        description="int8 (CPU), float16 and bfloat16 (GPU) are faster, with rounding errors; null: float32 on a CPU, "
        "float16 on a GPU.",
    )
    device: str | None = Field(None, description="cpu, cuda or cuda:N; null: a GPU if there is one.")
    threads: int | None = Field(
        None,
        ge=1,
        description="CPU threads per model, or per worker of a model; null: one per processor, divided among the "
        "workers.",
    )
    workers: int = Field(
        0,
        ge=0,
        description="Number of worker processes per model. Each translates one batch at a time; they share the "
        "weights, and one that ends is replaced. 0: translate in the server's own process.",
    )
    worker_seconds: float = Field(
        60,
        gt=0,
        description="Maximum time in seconds that a worker may take without producing a result; then it is replaced.",
    )
    worker_megabytes: int | None = Field(
        None,
        ge=1,
        description="Memory limit of a worker in megabytes, without the shared weights. Batches that need more are "
        "retried in smaller parts, then answered with an error. null: no limit.",
    )

    @model_validator(mode="after")
    def _limits_workers(self) -> Self:
        if self.worker_megabytes is not None and not self.workers:
            raise ValueError("worker_megabytes limits the memory of workers, and workers is 0: set workers")
        return self


class QueueConfig(Config):
    """How requests of many clients are batched. Each model has its own queue."""

    batch_tokens: int = Field(2048, ge=1, description="Maximum number of source tokens per batch.")
    batch_lines: int = Field(64, ge=1, description="Maximum number of sentences per batch.")
    gather_milliseconds: float = Field(
        2,
        ge=0,
        description="How long a batch with lines of several clients waits for further lines, in milliseconds; with a "
        "single client it does not wait.",
    )
    most_tokens: int = Field(
        100_000,
        ge=1,
        description="Maximum number of source tokens in the queue; further requests are rejected at once with status "
        "503.",
    )
    cache_entries: int = Field(
        10_000, ge=0, description="Number of sentences whose translations are cached; 0: no cache."
    )


class LimitsConfig(Config):
    """Limits on the requests of a client. They apply unless `serve.yaml` overrides them."""

    body_bytes: int = Field(
        1_000_000, ge=1, description="Maximum size of a request body in bytes; the default fits about 100,000 words."
    )
    characters: int = Field(
        10_000,
        ge=1,
        description="Maximum number of characters in all texts of a request; the default is about three printed pages.",
    )
    texts: int = Field(128, ge=1, description="Maximum number of texts in a list.")
    beam: int = Field(
        8, ge=1, description="Maximum beam size; time grows with it, and quality hardly improves beyond 5."
    )
    alternatives: int = Field(
        5,
        ge=0,
        description="Maximum number of alternative translations per text; each takes one hypothesis of the beam.",
    )
    glossary_terms: int = Field(500, ge=0, description="Maximum number of terms in the glossary of a request.")
    constraints: int = Field(
        10, ge=0, description="Maximum number of phrases that the translations of a request must contain."
    )
    seconds: float = Field(
        4.5,
        gt=0,
        description="Timeout of a request in seconds, after which it is answered with status 503; clients usually "
        "wait for 5 to 10.",
    )
    file_bytes: int = Field(10_000_000, ge=1, description="Maximum size of a file to translate, in bytes.")
    file_seconds: float = Field(120, gt=0, description="Timeout for the translation of a file, in seconds.")
    kept_bytes: int = Field(
        200_000_000,
        ge=1,
        description="Maximum total size of the translated files kept in memory, in bytes; the oldest is dropped first.",
    )
    kept_seconds: float = Field(600, gt=0, description="How long a translated file can be downloaded, in seconds.")
    suggestions_bytes: int = Field(
        100_000_000,
        ge=1,
        description="Maximum size of the suggestions file in bytes; beyond it, suggestions are rejected.",
    )
    body_seconds: float = Field(10, gt=0, description="Timeout for receiving a request body, in seconds.")
    connections: int = Field(
        1000, ge=1, description="Maximum number of open connections; further ones are rejected with status 503."
    )


class ServeConfig(Config):
    """Settings of `dragoman serve`."""

    host: str = Field("127.0.0.1", description="Address to listen on; 0.0.0.0 listens on every address of the machine.")
    port: int = Field(5000, ge=0, le=65535, description="Port to listen on; 0: any free port.")
    models: tuple[ModelConfig, ...] = Field((), description="Models to serve.")
    pivots: tuple[str, ...] = Field(
        ("en",), description="Pivot languages for directions without a model, in order of preference."
    )
    log: bool = Field(True, description="Write one JSON line per request to stderr, without texts and keys.")
    suggestions: Path | None = Field(
        None,
        description="JSON Lines file to which translations suggested by clients are appended; null: suggestions are "
        "rejected.",
    )
    reload_seconds: float = Field(
        10, ge=0, description="How often the model folders are checked for changes, in seconds; 0: never."
    )
    engine: EngineConfig = Field(EngineConfig(), description="Inference engine.")
    queue: QueueConfig = Field(QueueConfig(), description="Batching of requests.")
    access: AccessConfig = Field(AccessConfig(), description="Access control and quotas.")
    limits: LimitsConfig = Field(LimitsConfig(), description="Limits on the requests of a client.")
