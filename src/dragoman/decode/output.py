"""Output settings shared by search and sampling: length limits and forbidden tokens."""

from collections.abc import Sequence
from typing import TypeVar

from pydantic import Field, model_validator

from dragoman.base.settings.config import Config
from dragoman.text.symbols import BOS, EOS, PAD, UNK


class OutputConfig(Config):
    """Limits on the length and the content of outputs."""

    length_factor: float = Field(
        default=2.0,
        ge=0,
        le=1000,
        allow_inf_nan=False,
        description="Maximum output length = length_factor · source tokens + length_margin (tokens, including the end "
        "of sentence).",
    )
    length_margin: int = Field(
        default=10, ge=1, le=1_000_000, description="Constant part of the maximum output length, in tokens."
    )
    maximum_length: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        description="Maximum output length in tokens, including the end of sentence, for sources of any length; null: "
        "only length_factor and length_margin limit the length.",
    )
    minimum_length: int = Field(
        default=0, ge=0, le=1_000_000, description="Minimum output length in tokens, excluding the end of sentence."
    )
    minimum_factor: float = Field(
        default=0.0,
        ge=0,
        le=1000,
        allow_inf_nan=False,
        description="Minimum output length = minimum_factor · source tokens, rounded down, or minimum_length if that "
        "is larger (tokens, excluding the end of sentence).",
    )
    no_repeat_ngram: int = Field(
        default=0,
        ge=0,
        le=1_000_000,
        description="Size of the n-grams that must not be repeated in an output; 0: no restriction.",
    )
    forbid: tuple[int, ...] = Field(
        default=(PAD, BOS, UNK),
        description="Token ids that are never generated. Default: padding, start of sentence and unknown word.",
    )
    force_start: bool = Field(
        default=True,
        description="Begin each output with the tags that precede every text of the target vocabulary, such as BART's "
        "first symbol. false: the model generates them. It has no effect on other vocabularies.",
    )
    token_scores: bool = Field(
        default=False, description="Also report the log-probability of each output token (--token-scores)."
    )

    def max_length(self, source_tokens: int) -> int:
        """Return the maximum length of an output for a source of `source_tokens` tokens, both including EOS."""
        longest = int(self.length_factor * source_tokens + self.length_margin)
        if self.maximum_length is not None:
            longest = min(longest, self.maximum_length)
        return max(longest, self.min_length(source_tokens) + 1)

    def min_length(self, source_tokens: int) -> int:
        """Return the minimum length of an output without EOS, for a source of `source_tokens` tokens including EOS.

        The result is always below `maximum_length`.
        """
        shortest = max(self.minimum_length, int(self.minimum_factor * (source_tokens - 1)))
        return shortest if self.maximum_length is None else min(shortest, self.maximum_length - 1)

    @property
    def needs_attention(self) -> bool:
        """Whether the decoder must return its attention weights."""
        return False

    @model_validator(mode="after")
    def _validate_lengths(self) -> "OutputConfig":
        if EOS in self.forbid:
            raise ValueError(f"forbid contains {EOS}, the end of sentence, which every translation needs: remove it")
        if any(token < 0 for token in self.forbid):
            raise ValueError(f"forbid contains {min(self.forbid)}, but token ids start at 0: remove it")
        if self.maximum_length is not None and self.minimum_length >= self.maximum_length:
            raise ValueError(
                f"minimum_length = {self.minimum_length} tokens plus the end of sentence exceed maximum_length = "
                f"{self.maximum_length}: raise maximum_length"
            )
        return self


C = TypeVar("C", bound=OutputConfig)


def expand_configs(config: C | Sequence[C], count: int) -> list[C]:
    """Return one config per sentence. config: one shared value, or a sequence of `count` configs."""
    configs = [config] * count if isinstance(config, OutputConfig) else list(config)
    if len(configs) != count:
        raise ValueError(f"{len(configs)} configs for {count} sentences")
    return configs
