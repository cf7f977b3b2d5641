"""The base class of every configuration. A config stands beside the module it builds and forbids unknown keys."""

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from dragoman.base.settings.schema import fill_kinds


class Config(BaseModel):
    """An immutable, validated group of settings; `kind` discriminates the members of a union."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    @model_validator(mode="before")
    @classmethod
    def _fill_kinds(cls, values: Any) -> Any:
        """A group of a union that leaves `kind` out gets the kind of the field's default."""
        return fill_kinds(cls, values)

    @classmethod
    def usual_kinds(cls, settings: dict[str, Any]) -> dict[str, str]:
        """The kinds of fields that leave theirs out, where the settings beside them change what is usual."""
        return {}
