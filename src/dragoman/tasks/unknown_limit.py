"""`UnknownLimitConfig`, the part of `data` sections that limits the share of unknown tokens."""

from typing import Self

from pydantic import Field

from dragoman.base.settings.config import Config
from dragoman.text.unknown_tokens import MAX_UNKNOWN


class UnknownLimitConfig(Config):
    """Base class of `data` sections of tasks that learn from text."""

    max_unknown: float | None = Field(
        MAX_UNKNOWN,
        gt=0,
        le=1,
        description="Maximum share of unknown tokens in the training data and in the validation data, per corpus and "
        "side. Above it, training is refused. null: no limit. Vocabularies of kind bpe and unigram have no unknown "
        "tokens.",
    )

    def with_stored_choices(self, stored: Self) -> Self:
        """Return the settings, with `max_unknown` copied from a stored run unless it is set."""
        if "max_unknown" in self.model_fields_set:
            return self
        return self.model_copy(update={"max_unknown": stored.max_unknown})

    def with_former_defaults(self) -> Self:
        """Return the settings of a run folder. Runs of versions without `max_unknown` have no limit."""
        return self if "max_unknown" in self.model_fields_set else self.model_copy(update={"max_unknown": None})
