"""The base class of every configuration. A config stands beside the module it builds and forbids unknown keys."""

from pydantic import BaseModel, ConfigDict


class Config(BaseModel):
    """An immutable, validated group of settings; `kind` discriminates the members of a union."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)
