"""Base classes of model settings, with and without presets."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import Config
from dragoman.models.initialisation import without_storage
from dragoman.text.tokenizers import VocabularySizes

_FEW = 8
"""Vocabulary size of models that are built only to check whether their parts are compatible."""


ExcludedTokens = tuple[Literal[0, 1, 3], ...]
"""Special symbols that a model may exclude from its predictions: PAD, BOS and UNK, but not EOS."""


class ModelSettings(Config):
    """The base class of model settings."""

    kind: str

    def build_for(self, sizes: VocabularySizes) -> Any:
        """Build the nn.Module, initialised from torch's default generator.

        Raises ConfigError for settings that are incompatible with each other or with the vocabularies.
        """
        raise NotImplementedError

    def resolve(self, size: int) -> Self:
        """Return the settings with all values filled in that depend on the size of the training corpus."""
        return self

    def with_stored_choices(self, stored: Self) -> Self:
        """Return the settings with all values that depend on the training corpus copied from a stored run."""
        return self


class PresetSettings(ModelSettings):
    """The base class of model settings with presets. Explicit settings override the values of a preset individually.

    presets: values by preset name, including a dropout rate and all fields of `families`. The positions of a preset
    apply only to families that support them; other families use their default. automatic: the presets that `auto`
    selects from, each with its maximum corpus size. size_unit: the unit of corpus sizes, such as pairs.
    """

    presets: ClassVar[Mapping[str, dict[str, Any]]]
    automatic: ClassVar[Mapping[str, float]]
    size_unit: ClassVar[str]
    families: ClassVar[tuple[str, ...]]

    preset: str | None = Field("auto", description="Name of a preset, which provides values for omitted settings.")

    @classmethod
    def add_implied_settings(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the settings with the values that this kind of model implies."""
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
            return cls.add_implied_settings(values)
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
        if "positions" in preset and "positions" not in values and not cls._is_valid_model(filled):
            del filled["positions"]
        return cls.add_implied_settings(filled)

    @classmethod
    def _is_valid_model(cls, settings: dict[str, Any]) -> bool:
        """Return whether the settings describe a valid model without a preset."""
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
    def _check_buildable(self) -> Self:
        """Detect incompatible parts before data is loaded, by building one layer of each side without storage."""
        one_layer = {part: getattr(self, part).with_one_layer() for part in self.families}
        try:
            with without_storage():
                self.model_copy(update=one_layer).build_for(VocabularySizes(_FEW, _FEW))
        except ConfigError as error:
            if self.preset != "auto" or not self._is_valid_with_some_preset():
                raise ValueError(str(error)) from None
        return self

    def _is_valid_with_some_preset(self) -> bool:
        """Return whether the settings are valid with at least one of the presets that `auto` selects from."""
        for preset in self.automatic:
            try:
                self.with_preset(preset)
            except ValueError:
                continue
            return True
        return False

    def with_preset(self, preset: str | None) -> Self:
        """Combine the explicit settings with those of `preset`. Raises ValidationError if they are incompatible."""
        return type(self).model_validate({**self.model_dump(exclude_unset=True), "preset": preset})

    def with_stored_choices(self, stored: Self) -> Self:
        """Return the settings with `preset: auto` replaced by the preset of a stored run."""
        return self if self.preset != "auto" else self.with_preset(stored.preset)

    def resolve(self, size: int) -> Self:
        """Return the settings with `preset: auto` replaced by the preset for a corpus of `size` pairs or tokens.

        Raises ConfigError if the other settings are incompatible with that preset.
        """
        if self.preset != "auto":
            return self
        preset = next(name for name, largest in self.automatic.items() if size <= largest)
        try:
            return self.with_preset(preset)
        except ValidationError as error:
            reasons = "; ".join(detail["msg"].removeprefix("Value error, ") for detail in error.errors())
            raise ConfigError(
                f"model.preset=auto selects {preset} for {size:,} {self.size_unit}, which is incompatible with the "
                f"other settings of the model ({reasons}): change these settings, or choose another preset"
            ) from None
