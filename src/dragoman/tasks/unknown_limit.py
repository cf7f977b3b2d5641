"""`UnknownLimitConfig`, the part of `data` sections that limits the share of unknown tokens."""

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
