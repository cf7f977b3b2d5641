"""Settings of whole models: what those of every kind promise, presets, and the early refusal of unbuildable models."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import Config
from dragoman.models.assembly import unfilled
from dragoman.text.tokenizers import VocabularySizes

_FEW = 8
"""Entries of the vocabularies of a model that is only built to see whether its parts go together."""


class ModelSettings(Config):
    """The base of every model's config, whatever its kind."""

    kind: str

    def build_for(self, sizes: VocabularySizes) -> Any:
        """A freshly initialised nn.Module, drawn from torch's default generator.

        Raises ConfigError for settings that do not go together, or not with these vocabularies.
        """
        raise NotImplementedError

    def resolved(self, size: int) -> Self:
        """With what is left to the size of the training corpus replaced by values."""
        return self

    def chosen_as(self, stored: Self) -> Self:
        """With what is left to the training corpus as a stored run has chosen it."""
        return self


class PresetSettings(ModelSettings):
    """The base of configs whose `preset` gives values that the other keys override one by one.

    presets: by name; all have a dropout rate and every part of `families`, the fields that hold one. A preset's
    positions are for families that can take them; others have their usual ones. automatic: what `auto` chooses from,
    with the largest corpus that each is for; counted: what a corpus is measured in.
    """

    presets: ClassVar[Mapping[str, dict[str, Any]]]
    automatic: ClassVar[Mapping[str, float]]
    counted: ClassVar[str]
    families: ClassVar[tuple[str, ...]]

    preset: str | None = Field("auto", description="Name of a preset: values for all settings that are not given.")

    @classmethod
    def completed(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """The same settings with what goes without saying in this kind of model."""
        return settings

    @classmethod
    def default_kinds(cls, settings: dict[str, Any]) -> dict[str, str]:
        """A preset says of which kind families and positions are."""
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
            raise ValueError(f"there is no preset '{name}'; choose one of {', '.join(cls.presets)}")
        preset = cls.presets[name]
        filled = {**preset, **values}
        for part in cls.families:
            usual = preset[part]
            if isinstance(filled[part], dict) and filled[part].get("kind", usual["kind"]) == usual["kind"]:
                filled[part] = {**usual, **filled[part]}
        if isinstance(filled["dropout"], dict):
            rate = preset["dropout"]
            filled["dropout"] = {"embedding": rate, "residual": rate, **filled["dropout"]}
        if "positions" in preset and "positions" not in values and not cls._makes_a_model(filled):
            del filled["positions"]
        return cls.completed(filled)

    @classmethod
    def _makes_a_model(cls, settings: dict[str, Any]) -> bool:
        """Whether settings without a preset make a model."""
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
        """Parts that do not go together are refused here, before any data are read: one layer is built, unfilled."""
        one_layer = {part: getattr(self, part).shallow() for part in self.families}
        try:
            with unfilled():
                self.model_copy(update=one_layer).build_for(VocabularySizes(_FEW, _FEW))
        except ConfigError as error:
            if self.preset != "auto" or not self._suits_a_preset():
                raise ValueError(str(error)) from None
        return self

    def _suits_a_preset(self) -> bool:
        """Whether one of those that `auto` chooses from can be built, though the classes' own values cannot."""
        for preset in self.automatic:
            try:
                self.of_preset(preset)
            except ValueError:
                continue
            return True
        return False

    def of_preset(self, preset: str | None) -> Self:
        """What is set, and that preset's values for the rest. Raises pydantic's ValidationError."""
        return type(self).model_validate({**self.model_dump(exclude_unset=True), "preset": preset})

    def chosen_as(self, stored: Self) -> Self:
        """With `preset: auto` replaced by what a stored run has chosen."""
        return self if self.preset != "auto" else self.of_preset(stored.preset)

    def resolved(self, size: int) -> Self:
        """With `preset: auto` replaced by the preset for a corpus of so many pairs, or whatever is `counted`.

        Raises ConfigError where what is set does not go with that preset's values.
        """
        if self.preset != "auto":
            return self
        preset = next(name for name, largest in self.automatic.items() if size <= largest)
        try:
            return self.of_preset(preset)
        except ValidationError as error:
            reasons = "; ".join(detail["msg"].removeprefix("Value error, ") for detail in error.errors())
            raise ConfigError(
                f"model.preset=auto is {preset} for {size:,} {self.counted}, and that does not go with the model's "
                f"other settings: {reasons}; or choose another preset"
            ) from None
