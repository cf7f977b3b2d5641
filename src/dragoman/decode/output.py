"""The settings that every way of writing an output shares: how long it may be, and what never stands in it."""

from collections.abc import Sequence
from typing import TypeVar

from pydantic import Field, model_validator

from dragoman.base.settings.config import Config
from dragoman.text.special import BOS, EOS, PAD, UNK


class OutputConfig(Config):
    """How long outputs may be, and what they may hold."""

    length_factor: float = Field(
        default=2.0,
        ge=0,
        description="Longest output = length_factor · source tokens + length_margin (tokens, end included).",
    )
    length_margin: int = Field(default=10, ge=1, description="The constant part of the longest output, in tokens.")
    minimum_length: int = Field(default=0, ge=0, description="Tokens that an output has at least, its end not counted.")
    forbid: tuple[int, ...] = Field(
        default=(PAD, BOS, UNK),
        description="Token ids that are never written; padding, beginning and unknown by default.",
    )

    def max_length(self, source_tokens: int) -> int:
        """The longest output in tokens, its end counted, for a source of `source_tokens` tokens (its end counted)."""
        return max(int(self.length_factor * source_tokens + self.length_margin), self.minimum_length + 1)

    @property
    def attends(self) -> bool:
        """Whether a decoder is to tell what it attends while it writes."""
        return False

    @model_validator(mode="after")
    def _can_end(self) -> "OutputConfig":
        if EOS in self.forbid:
            raise ValueError(f"forbid holds {EOS}, the end of sentence, without which no translation ends; remove it")
        if any(token < 0 for token in self.forbid):
            raise ValueError(f"forbid holds {min(self.forbid)}, but token ids count from 0; remove it")
        return self


C = TypeVar("C", bound=OutputConfig)


def each(config: C | Sequence[C], count: int) -> list[C]:
    """One config a sentence; `config` may be one for all, or be that already."""
    configs = [config] * count if isinstance(config, OutputConfig) else list(config)
    if len(configs) != count:
        raise ValueError(f"{len(configs)} configs for {count} sentences")
    return configs
