"""`GenerationRequest`: how texts are to be continued, with nothing left open."""

from dataclasses import dataclass, field
from typing import TypedDict

from dragoman.base.errors import ConfigError
from dragoman.decode.sampling import SamplingConfig

MAX_TOKENS = 256


@dataclass(frozen=True)
class GenerationRequest:
    """`LanguageModel.request` makes it, with the model's own settings.

    sampling: temperature, top_k, top_p, and what is never written; its limits by the length of a source mean nothing.
    stop: strings, before the first of which a text ends. seed: with a prompt's number and a sample's it decides what is
    drawn. samples: how many for each prompt. max_tokens: of a continuation, its end counted. Raises ConfigError for a
    value that makes no sense.
    """

    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    stop: tuple[str, ...] = ()
    seed: int = 1
    samples: int = 1
    max_tokens: int = MAX_TOKENS

    def __post_init__(self) -> None:
        if "" in self.stop:
            raise ConfigError("a stop string is empty, and would stop every text before it begins: leave it out")
        for name, least in (("seed", 0), ("samples", 1), ("max_tokens", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} must be at least {least}, not {getattr(self, name)}")


class GenerationSettings(TypedDict, total=False):
    """What `LanguageModel.request` takes, as `generate` and `stream` pass it on."""

    temperature: float | None
    top_k: int | None
    top_p: float | None
    stop: tuple[str, ...] | list[str]
    seed: int
    samples: int
    max_tokens: int
