"""`HeldOutSetting`, the base class of `data` sections whose sets can be held out from the training data."""

from typing import TYPE_CHECKING, Any, Self

from pydantic import Field

from dragoman.base.settings.config import Config
from dragoman.data.held_out.config import HeldOutConfig, Sizes


class HeldOutSetting(Config):
    """Base class of `data` sections whose validation and test sets can be held out from the training data."""

    if TYPE_CHECKING:

        @property
        def valid_sets(self) -> tuple[Any, ...]:
            """The validation sets that are named."""

    held_out: HeldOutConfig | None = Field(
        None,
        description="Hold out the sets that are not named, for validation and testing, from the training data; null: "
        "only if `valid` is null. The sets are stored in the folder held_out of the run.",
    )

    @property
    def holds_out(self) -> bool:
        """Whether sets are held out from the training data."""
        return self.held_out is not None or not self.valid_sets

    def with_sizes(self, sizes: Sizes) -> Self:
        """Return the settings with the sizes of the held-out sets instead of null."""
        return self.model_copy(update={"held_out": (self.held_out or HeldOutConfig()).completed(sizes)})

    def with_stored_sizes(self, stored: Self) -> Self:
        """Return the settings, with the sizes of the held-out sets copied from a stored run where they are null."""
        if not self.holds_out or stored.held_out is None:
            return self
        given = self.held_out or HeldOutConfig()
        numbers = {name: getattr(given, name) or getattr(stored.held_out, name) for name in ("valid", "test")}
        return self.model_copy(update={"held_out": given.model_copy(update=numbers)})
