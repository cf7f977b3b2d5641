"""`LabelledHead`, the base class of the settings of heads that choose among named classes."""

from pydantic import Field, field_validator

from dragoman.base.settings.config import Config

_UNKNOWN_LABELS = 2
"""Number of classes of a head that is built before its labels are known, to check or describe the settings."""


class LabelledHead(Config):
    """Base class of heads that choose among named classes."""

    labels: tuple[str, ...] | None = Field(
        None,
        min_length=1,
        description="Names of the classes. null: the labels in the training data, sorted by name. Labels in the data "
        "that are not listed are errors.",
    )
    dropout: float = Field(0.1, ge=0, lt=1, description="Dropout rate before the output layer (0 to 1).")

    @field_validator("labels", mode="before")
    @classmethod
    def _accept_numbers(cls, value: object) -> object:
        """Convert the numbers and booleans that YAML makes of unquoted labels into their names."""
        if not isinstance(value, list | tuple):
            return value
        return tuple(str(name).lower() if isinstance(name, bool) else str(name) for name in value)

    @field_validator("labels")
    @classmethod
    def _check_distinct(cls, labels: tuple[str, ...] | None) -> tuple[str, ...] | None:
        repeated = [name for number, name in enumerate(labels or ()) if name in (labels or ())[:number]]
        if repeated:
            raise ValueError(f"the label {repeated[0]!r} is listed twice")
        return labels

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return _UNKNOWN_LABELS if self.labels is None else len(self.labels)
