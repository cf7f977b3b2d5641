"""`ServedPredictor`: a loaded prediction model. `Predictors`: all prediction models of a server, by name."""

from typing import Any

from dragoman.addons.serving.config import EngineConfig, ModelConfig
from dragoman.addons.serving.errors import RequestError
from dragoman.addons.serving.models.batched_predictor import BatchedPredictor, batched
from dragoman.addons.serving.models.graph_nodes import NodesPredictor
from dragoman.addons.serving.models.named_models import NamedModels
from dragoman.addons.serving.models.served_models import folder_version
from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.machine.device import use_threads
from dragoman.checkpoint.folder import read_config
from dragoman.engines.choice import serves
from dragoman.inference.load import kind_of, model_for
from dragoman.inference.prediction.parts import task_names
from dragoman.inference.prediction.predictor import Predictor
from dragoman.models.heads.none import NoHeadConfig


class ServedPredictor:
    """A prediction model that is loaded and can be reloaded without interrupting the service.

    name: its name in requests and metrics. It runs in the server process. tasks: a predictor for each of its tasks by
    name; the name is empty if it has only one.
    """

    def __init__(self, config: ModelConfig, engine: EngineConfig, name: str) -> None:
        """Load the model.

        Raises ModelError and ConfigError as `Predictor.load` does, ModelError for a model without a head, and
        ConfigError for settings that apply only to translation models.
        """
        if config.source is not None or config.target is not None:
            raise ConfigError(f"{config.path} predicts labels and has no languages: remove `source` and `target`")
        self.name, self._config, self._engine = name, config, engine
        self._version = folder_version(config.path)
        use_threads(engine.threads)
        self.tasks = _load(config, engine)

    @property
    def description(self) -> dict[str, str]:
        """The properties that are reported as metrics."""
        kinds = ",".join(each.task for each in self.tasks.values())
        labels = sum(len(each.labels) for each in self.tasks.values())
        precision = next(iter(self.tasks.values())).precision
        return {"task": kinds, "labels": str(labels), "precision": precision}

    def as_json(self) -> dict[str, Any]:
        """Return the properties for clients as JSON types."""
        tasks = {name: {"task": each.task, "labels": list(each.labels)} for name, each in self.tasks.items()}
        only = tasks.get("")
        return {"name": self.name, "kind": "prediction", **({"tasks": tasks} if only is None else only)}

    def choose(self, task: str | None) -> BatchedPredictor:
        """Return the predictor of a task; None: the only one. Raises RequestError for an unknown name."""
        if task is None and len(self.tasks) == 1:
            return next(iter(self.tasks.values()))
        if task in self.tasks and task:
            return self.tasks[task]
        listed = ", ".join(filter(None, self.tasks))
        if not listed:
            raise RequestError(f"Invalid request: task: the model {self.name} has only one task: leave out the field")
        problem = "has several tasks" if task is None else "has no task of this name"
        raise RequestError(f"Invalid request: task: the model {self.name} {problem}: name one of {listed}")

    def reload(self) -> bool:
        """Reload the model if its folder has changed, and return whether it has.

        Raises ModelError and ConfigError if loading fails. The old model is then served until the folder changes again.
        """
        version = folder_version(self._config.path)
        if version == self._version:
            return False
        self._version = version
        self.tasks = _load(self._config, self._engine)
        return True


def _load(config: ModelConfig, engine: EngineConfig) -> dict[str, BatchedPredictor]:
    # an engine that is selected for the translation models of a server may not serve others
    name = engine.name if serves(engine.name, "predict") else "auto"
    try:
        if "classify_nodes" in kind_of(config.path).abilities:
            return {"": NodesPredictor(model_for("classify_nodes", config.path, engine.device))}
        if task_names(read_config(config.path)["model"]):  # their predictors share an encoder
            return dict(Predictor.load_tasks(config.path, engine.device, engine=name, precision=engine.precision))
        preferred = {"engine": name, "precision": engine.precision}
        model = batched(model_for("predict", config.path, engine.device, preferred=preferred))
    except ConfigError as error:
        raise ConfigError(f"{config.path}: {error}") from None
    if model.task == NoHeadConfig().kind:
        raise ModelError(f"{config.path} has no head, so it predicts no labels: train one with train.start")
    return {"": model}


class Predictors(NamedModels[ServedPredictor]):
    """The prediction models of a server by name."""

    noun = "prediction model"
