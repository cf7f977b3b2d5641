"""`HeldOutConfig`: how many pairs, examples or documents dragoman holds out from a corpus, and their defaults."""

from typing import Literal, NamedTuple

from pydantic import Field

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.settings.config import Config

FEWEST = 20
"""Minimum number of pairs, examples or documents of a corpus from which some are held out."""

Unit = Literal["pairs", "examples", "documents"]

_FRACTION, _LARGEST_FRACTION = 20, 10  # one of 20, at most one of 10
_FEWEST_HELD_OUT = 50
_MOST_VALID, _MOST_TEST = 1000, 2000

_SIZE = (
    "Number of pairs, examples or documents that are held out from the training data for {}; null: 5% of the data, but "
    "at least 50 unless these are more than 10%, and at most {:,}."
)

_SINGLE = {"pairs": "complete sentence pairs", "examples": "labelled examples", "documents": "documents"}
_REMEDIES = {
    "pairs": "Add pairs, or give a validation set (data.valid, --valid-source and --valid-target, or --valid-pairs)",
    "examples": "Add examples, or give a validation set (data.valid)",
    "documents": "Add text, or give a validation set (data.valid). If the text is one document, divide it: "
    "data.train.documents=blank_line or line",
}


class Sizes(NamedTuple):
    """Numbers of pairs, examples or documents of a validation and a test set."""

    valid: int
    test: int


class HeldOutConfig(Config):
    """Sizes of the sets that are held out from the training data, in proportion to the sizes of the corpora.

    No held-out sentence or document, nor a near-duplicate, remains in training (docs/how-to/corpora/hold-out.md).
    """

    valid: int | None = Field(default=None, ge=1, description=_SIZE.format("validation", _MOST_VALID))
    test: int | None = Field(default=None, ge=1, description=_SIZE.format("testing", _MOST_TEST))
    seed: int = Field(default=1, ge=0, description="Seed of the selection. The same seed selects the same data.")

    def sizes(self, count: int, names: str, unit: Unit = "pairs") -> Sizes:
        """Return the sizes of the sets to hold out. count, names: of the corpora. unit: what is counted.

        Raises DataError if the corpora are too small, and ConfigError if more than half of them would be held out.
        """
        if count < FEWEST:
            raise DataError(
                f"{names}: only {count:,} {_SINGLE[unit]}, too few to hold out a validation set; at least {FEWEST} are "
                f"needed. {_REMEDIES[unit]}"
            )
        sizes = Sizes(self.valid or _default(count, _MOST_VALID), self.test or _default(count, _MOST_TEST))
        if 2 * sum(sizes) > count:
            raise ConfigError(
                f"data.held_out: {sizes.valid:,} {unit} for validation and {sizes.test:,} for testing are more than "
                f"half of the {count:,} {unit} of {names}: lower data.held_out.valid and data.held_out.test"
            )
        return sizes

    def completed(self, sizes: Sizes) -> "HeldOutConfig":
        """Return the settings with numbers instead of null."""
        return self.model_copy(update={"valid": self.valid or sizes.valid, "test": self.test or sizes.test})


def _default(count: int, most: int) -> int:
    return min(most, max(count // _FRACTION, min(_FEWEST_HELD_OUT, count // _LARGEST_FRACTION)))
