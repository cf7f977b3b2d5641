"""`ControlDefaults`: the control of translations whose requests do not set it, by direction."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dragoman.addons.documents.expected_spans import ExpectedSpans
from dragoman.addons.serving.config import ControlConfig, ServeConfig
from dragoman.base.errors import ConfigError
from dragoman.inference.control.glossary import Glossary
from dragoman.inference.control.keep import KeepRules
from dragoman.text.languages.codes import match_code


@dataclass(frozen=True)
class Defaults:
    """The defaults of one direction. settings: as in `Translator.request`. expected: spans to keep."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    expected: ExpectedSpans | None = None

    def merged(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of a request, with defaults for those that are missing."""
        return {**self.settings, **settings}


class ControlDefaults:
    """The defaults for all directions, and those of single directions. Glossaries are read only once."""

    def __init__(self, config: ServeConfig) -> None:
        """Raises ConfigError for invalid kinds and patterns, and DataError for an unreadable glossary."""
        self._glossaries: dict[str, Glossary] = {}
        self._general = self._build("control", config.control, config.control)
        self._by_direction = {
            (each.source, each.target): self._build(f"directions.{index}", each, config.control)
            for index, each in enumerate(config.directions)
        }

    def of(self, source: str, target: str) -> Defaults:
        """Return the defaults for a direction, given by codes as clients or models write them."""
        if (found := self._by_direction.get((source, target))) is not None:
            return found
        for (first, second), defaults in self._by_direction.items():
            if match_code(first, [source]) == source and match_code(second, [target]) == target:
                return defaults
        return self._general

    def _build(self, name: str, config: ControlConfig, general: ControlConfig) -> Defaults:
        chosen = [
            own if own is not None else other for own, other in zip(_values(config), _values(general), strict=True)
        ]
        keep, patterns, path, guard = chosen
        settings: dict[str, Any] = {}
        if path is not None:
            if str(path) not in self._glossaries:
                self._glossaries[str(path)] = Glossary.read(path)
            settings["glossary"] = self._glossaries[str(path)]
        if guard:
            settings["guard"] = True
        try:
            rules = KeepRules.of(("all",) if keep is None else keep, patterns or ())
        except ConfigError as error:
            raise ConfigError(f"{name}.keep: {error}") from None
        return Defaults(settings, None if rules is None else ExpectedSpans(rules))


def _values(config: ControlConfig) -> tuple[Any, ...]:
    return config.keep, config.keep_patterns, config.glossary, config.guard
