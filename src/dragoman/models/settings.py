"""Base classes of the settings of whole models, with and without presets."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import Config
from dragoman.models.assembly import without_storage
from dragoman.text.tokenizers import VocabularySizes

_FEW = 8
"""Vocabulary size of a model that is only built to check that its parts are compatible."""


class ModelSettings(Config):
    """The base class of the settings of a model of any kind."""

    kind: str

    def build_for(self, sizes: VocabularySizes) -> Any:
        """Build the nn.Module, initialised from torch's default generator.

        Raises ConfigError for settings that are incompatible with one another or with these vocabularies.
        """
        raise NotImplementedError

    def resolved(self, size: int) -> Self:
        """Return the settings with values for everything that depends on the size of the training corpus."""
        return self

    def chosen_as(self, stored: Self) -> Self:
        """Return the settings with everything that depends on the training corpus taken from a stored run."""
        return self


class PresetSettings(ModelSettings):
    """The base class of settings whose `preset` sets values, which the other keys override one by one.

    presets: values by name; each has a dropout rate and every field of `families`. A preset's positions apply to
    families that support them; others use their default. automatic: the presets that `auto` chooses from, each with the
    largest corpus size that it is meant for. counted: the unit of a corpus's size.
    """

    presets: ClassVar[Mapping[str, dict[str, Any]]]
    automatic: ClassVar[Mapping[str, float]]
    counted: ClassVar[str]
    families: ClassVar[tuple[str, ...]]

    preset: str | None = Field("auto", description="Name of a preset: values for all settings that are not given.")

    @classmethod
    def completed(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the settings with values that this kind of model implies."""
        return settings

    @classmethod
    def default_kinds(cls, settings: dict[str, Any]) -> dict[str, str]:
        """Return the kinds of families and positions that a preset implies."""
        preset = cls.presets.get(str(settings.get("preset")), {})
        return {part: preset[part]["kind"] for part in (*cls.families, "positions") if part in preset}

    @model_validator(mode="before")
    @classmethod
    def _fill_from_preset(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        name = values.get("preset", "auto")
        if name in (None, "auto"):
            return cls.completed(values)
        if name not in cls.presets:
            raise ValueError(f"unknown preset '{name}': expected one of {', '.join(cls.presets)}")
        preset = cls.presets[name]
        filled = {**preset, **values}
        for part in cls.families:
            defaults = preset[part]
            if isinstance(filled[part], dict) and filled[part].get("kind", defaults["kind"]) == defaults["kind"]:
                filled[part] = {**defaults, **filled[part]}
        if isinstance(filled["dropout"], dict):
            rate = preset["dropout"]
            filled["dropout"] = {"embedding": rate, "residual": rate, **filled["dropout"]}
        if "positions" in preset and "positions" not in values and not cls._makes_a_model(filled):
            del filled["positions"]
        return cls.completed(filled)

    @classmethod
    def _makes_a_model(cls, settings: dict[str, Any]) -> bool:
        """Whether the settings describe a valid model without a preset."""
        try:
            cls.model_validate({**settings, "preset": None})
        except ValueError:
            return False
        return True

    @field_validator("dropout", mode="before", check_fields=False)
    @classmethod
    def _spread_one_rate(cls, value: Any) -> Any:
        return {"embedding": value, "residual": value} if isinstance(value, int | float) else value

    @model_validator(mode="after")
    def _can_be_built(self) -> Self:
        """Detect incompatible parts before any data is read, by building one layer without storage."""
        one_layer = {part: getattr(self, part).shallow() for part in self.families}
        try:
            with without_storage():
                self.model_copy(update=one_layer).build_for(VocabularySizes(_FEW, _FEW))
        except ConfigError as error:
            if self.preset != "auto" or not self._suits_a_preset():
                raise ValueError(str(error)) from None
        return self

    def _suits_a_preset(self) -> bool:
        """Whether the settings can be built with at least one preset that `auto` chooses from."""
        for preset in self.automatic:
            try:
                self.of_preset(preset)
            except ValueError:
                continue
            return True
        return False

    def of_preset(self, preset: str | None) -> Self:
        """Complete the settings that were given explicitly with a preset. Raises pydantic's ValidationError."""
        return type(self).model_validate({**self.model_dump(exclude_unset=True), "preset": preset})

    def chosen_as(self, stored: Self) -> Self:
        """Return the settings with `preset: auto` replaced by the preset that a stored run has chosen."""
        return self if self.preset != "auto" else self.of_preset(stored.preset)

    def resolved(self, size: int) -> Self:
        """Return the settings with `preset: auto` replaced by the preset for a corpus of `size` units (see `counted`).

        Raises ConfigError if the other settings are incompatible with that preset.
        """
        if self.preset != "auto":
            return self
        preset = next(name for name, largest in self.automatic.items() if size <= largest)
        try:
            return self.of_preset(preset)
        except ValidationError as error:
            reasons = "; ".join(detail["msg"].removeprefix("Value error, ") for detail in error.errors())
            raise ConfigError(
                f"model.preset=auto is {preset} for {size:,} {self.counted}, which is incompatible with the other "
                f"settings of the model: {reasons}; or choose another preset"
            ) from None
