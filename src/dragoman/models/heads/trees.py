"""`TreeHead`, the base class of the settings of heads that parse sentences."""

from pydantic import Field

from dragoman.base.settings.config import Config

_UNKNOWN = ("S",)
"""The labels and tags of a head that is built before those of the treebank are known, to check the settings."""


class TreeHead(Config):
    """Base class of heads that predict the constituency tree of a sentence."""

    labels: tuple[str, ...] | None = Field(
        None,
        min_length=1,
        description="Labels of constituents, such as NP. null: those of the training data, sorted by name. Labels in "
        "the data that are not listed are errors.",
    )
    tags: tuple[str, ...] | None = Field(
        None,
        min_length=1,
        description="Tags of words, such as DT. null: those of the training data, sorted by name.",
    )
    punctuation: dict[str, tuple[str, ...]] | None = Field(
        None,
        description="Words that may be punctuation, each with the tags that it may have. All other words have no tag "
        "of punctuation. Bracket scores depend on it, because punctuation is removed by its tags. null: the words of "
        "the training data with such a tag, and the tags that at least a tenth of their occurrences have.",
        json_schema_extra={"listed": False},
    )

    @property
    def known_labels(self) -> tuple[str, ...]:
        """The labels; a single one if they are not known yet."""
        return self.labels or _UNKNOWN

    @property
    def known_tags(self) -> tuple[str, ...]:
        """The tags; a single one if they are not known yet."""
        return self.tags or _UNKNOWN
