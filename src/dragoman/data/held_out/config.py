"""`HeldOutConfig`: the numbers of pairs that dragoman holds out from a corpus, and their defaults."""

from typing import NamedTuple

from pydantic import Field

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.settings.config import Config

FEWEST_PAIRS = 20
"""Minimum number of pairs of a corpus from which pairs are held out."""

_FRACTION, _LARGEST_FRACTION = 20, 10  # one of 20 pairs, at most one of 10
_FEWEST = 50
_MOST_VALID, _MOST_TEST = 1000, 2000

_SIZE = (
    "Number of pairs that are held out from the training corpora for {}; null: 5% of the corpora, but at least 50 "
    "pairs unless these are more than 10%, and at most {:,}."
)


class Sizes(NamedTuple):
    """Numbers of pairs of a validation and a test set."""

    valid: int
    test: int


class HeldOutConfig(Config):
    """Numbers of pairs that are held out from the training corpora, in proportion to the sizes of the corpora.

    No sentence of these pairs, nor a near-duplicate, remains in training (docs/how-to/corpora/hold-out.md).
    """

    valid: int | None = Field(default=None, ge=1, description=_SIZE.format("validation", _MOST_VALID))
    test: int | None = Field(default=None, ge=1, description=_SIZE.format("testing", _MOST_TEST))
    seed: int = Field(default=1, ge=0, description="Seed of the selection. The same seed selects the same pairs.")

    def sizes(self, pairs: int, names: str) -> Sizes:
        """Return the numbers of pairs to hold out from corpora. pairs, names: of the corpora.

        Raises DataError if the corpora are too small, and ConfigError if more than half of the pairs would be held out.
        """
        if pairs < FEWEST_PAIRS:
            raise DataError(
                f"{names}: only {pairs:,} complete sentence pairs, too few to hold out a validation set; at least "
                f"{FEWEST_PAIRS} are needed. Add pairs, or give a validation set (data.valid, "
                "--valid-source and --valid-target, or --valid-pairs)"
            )
        sizes = Sizes(self.valid or _default(pairs, _MOST_VALID), self.test or _default(pairs, _MOST_TEST))
        if 2 * sum(sizes) > pairs:
            raise ConfigError(
                f"data.held_out: {sizes.valid:,} pairs for validation and {sizes.test:,} for testing are more than "
                f"half of the {pairs:,} pairs of {names}: lower data.held_out.valid and data.held_out.test"
            )
        return sizes

    def completed(self, sizes: Sizes) -> "HeldOutConfig":
        """Return the settings with numbers instead of null."""
        return self.model_copy(update={"valid": self.valid or sizes.valid, "test": self.test or sizes.test})


def _default(pairs: int, most: int) -> int:
    return min(most, max(pairs // _FRACTION, min(_FEWEST, pairs // _LARGEST_FRACTION)))
