"""`ServeConfig`: the settings of a server, in `serve.yaml`."""

import sys
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from dragoman.addons.serving.access.config import AccessConfig
from dragoman.base.settings.config import Config


class ModelConfig(Config):
    """A model to serve."""

    path: Path = Field(
        description="Folder of a translation, prediction or language model, or of one written by `dragoman export`."
    )
    name: str | None = Field(
        None,
        min_length=1,
        description="Name of the model in metrics, and in requests for predictions, completions and scores; null: the "
        "name of the folder.",
    )
    system: str | None = Field(
        None,
        description="Model of a folder that has several: neural, phrase_based, hybrid or dictionary. null: the best "
        "one on its validation set.",
    )
    source: str | None = Field(None, description="Code of the source language; null: the code stored in the folder.")
    target: str | None = Field(None, description="Code of the target language; null: the code stored in the folder.")


class EngineConfig(Config):
    """Settings of the inference engine. `dragoman translate` has the same options."""

    name: str = Field(
        "auto", description="Name of an engine, or auto. Prediction models have the engines native and torch."
    )
    precision: Literal["auto", "float32", "float16", "bfloat16", "int8"] | None = Field(
        "auto",
        description="Numerical precision. int8 (CPU), float16 (GPU) and bfloat16 are faster but introduce rounding "
        "errors. auto: on a CPU, int8 if it costs at most 0.2 BLEU by the measurement in the model folder and is "
        "faster on this processor; otherwise like null. null: float32 on a CPU, float16 on a GPU. Prediction models "
        "support float32, which is their default, and int8 on a CPU.",
    )
    device: str | None = Field(None, description="Device: cpu, cuda or cuda:N. null: a GPU if one is available.")
    threads: int | None = Field(
        None,
        ge=1,
        description="Number of CPU threads per model, or per worker if there are workers. null: the number of "
        "processors, divided among the workers.",
    )
    workers: int = Field(
        0,
        ge=0,
        description="Number of worker processes per model. Each worker translates one batch at a time. All workers "
        "share the weights, and a worker that ends is replaced. 0: translate in the server process. Linux only.",
    )
    worker_seconds: float = Field(
        60,
        gt=0,
        description="Time in seconds after which a worker that has produced no result is replaced.",
    )
    worker_megabytes: int | None = Field(
        None,
        ge=1,
        description="Memory limit per worker in megabytes, excluding the shared weights. A batch that exceeds the "
        "limit is retried in smaller parts. A sentence that still exceeds it is answered with an error. null: no "
        "limit.",
    )

    @model_validator(mode="after")
    def _limits_workers(self) -> Self:
        if self.worker_megabytes is not None and not self.workers:
            raise ValueError("worker_megabytes limits the memory of workers, but workers is 0: set workers")
        if self.workers and sys.platform == "darwin":  # Apple's libraries do not work in forked processes
            raise ValueError("worker processes are forked, which macOS does not support: set workers to 0")
        return self


class QueueConfig(Config):
    """Settings for batching the requests of many clients. Each model has a separate queue."""

    batch_tokens: int = Field(2048, ge=1, description="Maximum number of source tokens per batch.")
    batch_lines: int = Field(64, ge=1, description="Maximum number of sentences per batch.")
    gather_milliseconds: float = Field(
        2,
        ge=0,
        description="Time in milliseconds that a batch with lines of several clients waits for further lines. A batch "
        "with lines of a single client does not wait.",
    )
    max_tokens: int = Field(
        100_000,
        ge=1,
        description="Maximum number of source tokens in the queue. Requests that exceed it are rejected at once with "
        "status 503.",
    )
    cache_entries: int = Field(
        10_000, ge=0, description="Number of sentences whose translations are cached; 0: no cache."
    )


class LimitsConfig(Config):
    """Limits on the requests of clients."""

    body_bytes: int = Field(
        1_000_000, ge=1, description="Maximum size of a request body in bytes; the default fits about 100,000 words."
    )
    characters: int = Field(
        10_000,
        ge=1,
        description="Maximum number of characters in all texts of a request; the default is about three printed pages.",
    )
    sentence_tokens: int = Field(
        200,
        ge=1,
        description="Maximum number of tokens of a sentence. A longer one is split, because the time of a search grows "
        "with the square of the length. Models that read whole texts, such as summarizers, are not limited.",
    )
    texts: int = Field(128, ge=1, description="Maximum number of texts in a list.")
    beam: int = Field(
        8, ge=1, description="Maximum beam size. A larger beam takes more time, and hardly helps beyond 5."
    )
    alternatives: int = Field(
        5,
        ge=0,
        description="Maximum number of alternative translations per text. Each uses one hypothesis of the beam.",
    )
    glossary_terms: int = Field(500, ge=0, description="Maximum number of terms in the glossary of a request.")
    constraints: int = Field(
        10, ge=0, description="Maximum number of phrases that the translations of a request must contain."
    )
    forms: int = Field(
        20, ge=1, description="Maximum number of forms of a required phrase, and of translations of a glossary term."
    )
    form_characters: int = Field(
        200, ge=1, description="Maximum length of a form, and of a glossary term, in characters."
    )
    completion_tokens: int = Field(
        1024, ge=1, description="Maximum number of tokens of a completion by a language model (`max_tokens`)."
    )
    completions: int = Field(
        16,
        ge=1,
        description="Maximum number of completions per request: the number of prompts times `n` or `best_of`.",
    )
    completion_seconds: float = Field(
        60, gt=0, description="Timeout of a request to /v1/completions in seconds, also of a stream."
    )
    seconds: float = Field(
        4.5,
        gt=0,
        description="Timeout of a request in seconds. A request that exceeds it is answered with status 503. Clients "
        "usually wait for 5 to 10 seconds.",
    )
    file_bytes: int = Field(10_000_000, ge=1, description="Maximum size of a file to translate, in bytes.")
    file_characters: int = Field(
        10_000_000,
        ge=1,
        description="Maximum number of characters of text in a file. With the default, only `file_bytes` limits text "
        "files, and this setting limits compressed files (docx, odt). A longer file is rejected before it is "
        "translated.",
    )
    file_seconds: float = Field(
        120,
        gt=0,
        description="Timeout for the translation of a file with up to a million characters of text, in seconds. A "
        "longer file has proportionally more time.",
    )
    file_megabytes: int = Field(
        1000,
        ge=1,
        description="Maximum memory in megabytes for parsing and writing a file, which happens in a separate process. "
        "A file that needs more is rejected with status 413. Only Linux supports this limit.",
    )
    upload_bytes: int = Field(
        50_000_000,
        ge=1,
        description="Maximum total size in bytes of the files that are being received and translated at the same time. "
        "A file takes up to about 30 times its size of memory. Further files are rejected with status 503.",
    )
    shutdown_seconds: float = Field(
        10,
        ge=0,
        description="Time in seconds after SIGTERM or Ctrl-C in which accepted requests and files are finished. "
        "Unfinished ones are then answered with status 503. A second signal ends the server at once.",
    )
    kept_bytes: int = Field(
        200_000_000,
        ge=1,
        description="Maximum total size in bytes of the stored translated files. The oldest file is dropped first.",
    )
    kept_seconds: float = Field(600, gt=0, description="Time in seconds for which a translated file can be downloaded.")
    suggestions_bytes: int = Field(
        100_000_000,
        ge=1,
        description="Maximum size of the suggestions file in bytes. Suggestions that exceed it are rejected.",
    )
    body_seconds: float = Field(
        10,
        gt=0,
        description="Timeout for receiving a request body of up to a megabyte, in seconds. A longer body has "
        "proportionally more time.",
    )
    connections: int = Field(
        1000,
        ge=1,
        description="Maximum number of open connections. Further connections are rejected with status 503. If a client "
        "keeps more than a quarter of them open without a request, its oldest is closed.",
    )


class ControlConfig(Config):
    """Control of translations whose requests do not set it. Requests override each setting."""

    keep: tuple[str, ...] | None = Field(
        None,
        description="Kinds of text that translations should contain unchanged, as in --keep: a translation that lacks "
        "some is searched again with them enforced. []: none. null: all, or the setting of `control`.",
    )
    keep_patterns: tuple[str, ...] | None = Field(
        None, description="Regular expressions for further text to keep, as in --keep-pattern."
    )
    glossary: Path | None = Field(None, description="Glossary file, as in --glossary; null: none.")
    guard: bool | None = Field(
        None,
        description="Search again if a translation has problems, e.g. repetitions (docs/explanation/guard.md).",
    )


class DoubtsConfig(Config):
    """What counts as a doubtful translation in the answers of /v1/translate and on the page."""

    expected_chrf: float = Field(
        30,
        ge=0,
        le=100,
        description="Lowest expected chrF that is not doubted. The chrF that translations of a certain probability had "
        "on the validation set is measured at the end of training. Translations that are less probable than 99% of "
        "those are always doubted.",
    )


class DirectionConfig(ControlConfig):
    """Control of the translations from one language into another. null: the setting of `control`."""

    source: str = Field(description="Code of the source language.")
    target: str = Field(description="Code of the target language.")


class ServeConfig(Config):
    """Settings of `dragoman serve`."""

    host: str = Field("127.0.0.1", description="Address to listen on. 0.0.0.0: all addresses of the machine.")
    port: int = Field(5000, ge=0, le=65535, description="Port to listen on; 0: any free port.")
    models: tuple[ModelConfig, ...] = Field((), description="Models to serve.")
    pivots: tuple[str, ...] = Field(
        ("en",), description="Pivot languages for directions without a model, in order of preference."
    )
    control: ControlConfig = Field(ControlConfig(), description="Control of translations whose requests do not set it.")
    doubts: DoubtsConfig = Field(DoubtsConfig(), description="What counts as a doubtful translation.")
    directions: tuple[DirectionConfig, ...] = Field(
        (), description="Control of single directions, which takes precedence over `control`."
    )
    log: bool = Field(True, description="Log one JSON line per request, without texts or keys.")
    log_file: Path | None = Field(
        None,
        description="File to which the log is appended instead of stderr. If it is renamed, as by logrotate, the next "
        "line goes to a new file. null: stderr.",
    )
    log_clients: Literal["none", "hash", "address"] = Field(
        "hash",
        description="How the log names clients. hash: by a hash of their address with a salt that changes at each "
        "start, which tells clients apart without naming them. address: by their IPv4 address, or the first 64 bits of "
        "their IPv6 address, for tools that block clients. none: not at all.",
    )
    suggestions: Path | None = Field(
        None,
        description="JSON Lines file to which translations suggested by clients are appended; null: suggestions are "
        "rejected.",
    )
    public_url: str | None = Field(
        None,
        pattern=r"^https?://[^\s/?#]+(/[^\s?#]*)?$",
        description="URL of the server for links in its answers, such as https://example.org/translate/; null: the URL "
        "of the request, corrected by the X-Forwarded headers of `access.trusted_proxies`.",
    )
    hosts: tuple[str, ...] = Field(
        (),
        description="Names, such as translate.example.org, under which clients reach a server that listens on a "
        "loopback address without `access.trusted_proxies`. Addresses, localhost and the host of `public_url` are "
        "always accepted, and all other names rejected, because they may belong to pages of other sites (DNS "
        "rebinding).",
    )
    files: Path | None = Field(
        None,
        description="Folder for translated files, which several servers can share, so that each of them can return all "
        "files; null: in memory.",
    )
    reload_seconds: float = Field(
        10, ge=0, description="Interval in seconds at which the model folders are checked for changes; 0: never."
    )
    engine: EngineConfig = Field(EngineConfig(), description="Inference engine.")
    queue: QueueConfig = Field(QueueConfig(), description="Batching of requests.")
    access: AccessConfig = Field(AccessConfig(), description="Access control and quotas.")
    limits: LimitsConfig = Field(LimitsConfig(), description="Limits on the requests of clients.")
