"""`ServedLanguageModel`: a loaded language model. `LanguageModels`: all language models of a server, by name."""

from typing import Any

from dragoman.addons.serving.config import EngineConfig, ModelConfig
from dragoman.addons.serving.models.named_models import NamedModels
from dragoman.addons.serving.models.served_models import folder_version
from dragoman.base.errors import ConfigError
from dragoman.base.machine.device import use_threads
from dragoman.engines.choice import serves
from dragoman.inference.abilities import SupportsPieces, missing_members
from dragoman.inference.load import model_for


class ServedLanguageModel:
    """A language model that is loaded and can be reloaded without interrupting the service.

    name: its name in requests and metrics. It runs in the server process. model: the loaded model.
    """

    def __init__(self, config: ModelConfig, engine: EngineConfig, name: str) -> None:
        """Load the model.

        Raises ModelError and ConfigError as `LanguageModel.load` does, and ConfigError for settings that apply only to
        translation models and for a model that does not yield its tokens.
        """
        if config.source is not None or config.target is not None:
            raise ConfigError(f"{config.path} continues texts and translates none: remove `source` and `target`")
        self.name, self._config, self._engine = name, config, engine
        self._version = folder_version(config.path)
        use_threads(engine.threads)
        self.model = _load(config, engine)

    @property
    def description(self) -> dict[str, str]:
        """The properties that are reported as metrics."""
        return {"task": "language_model", "window": str(self.model.window or "unlimited")}

    def as_json(self) -> dict[str, Any]:
        """Return the properties for clients as JSON types."""
        return {"name": self.name, "kind": "language_model", "window": self.model.window}

    def reload(self) -> bool:
        """Reload the model if its folder has changed, and return whether it has.

        Raises ModelError and ConfigError if loading fails. The old model is then served until the folder changes again.
        """
        version = folder_version(self._config.path)
        if version == self._version:
            return False
        self._version = version
        self.model = _load(self._config, self._engine)
        return True


def _load(config: ModelConfig, engine: EngineConfig) -> SupportsPieces:
    name = engine.name if serves(engine.name, "generate") else "auto"
    model = model_for("generate", config.path, engine.device, preferred={"engine": name})
    if missing := missing_members(model, SupportsPieces):
        raise ConfigError(f"{config.path}: {type(model).__name__} lacks {', '.join(missing)}, which a server needs")
    return model  # type: ignore[return-value]


class LanguageModels(NamedModels[ServedLanguageModel]):
    """The language models of a server by name."""

    noun = "language model"
