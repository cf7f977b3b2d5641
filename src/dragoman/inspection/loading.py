"""`load_model`: a model of any kind, with the engine whose computation is visible."""

from pathlib import Path

from dragoman.base.errors import ConfigError, reject_options
from dragoman.checkpoint.folder import folder_kind
from dragoman.exchange.ctranslate2.folder import is_exported
from dragoman.inference.generation.language_model import LanguageModel
from dragoman.inference.prediction.nodes import NodePredictor
from dragoman.inference.prediction.predictor import Predictor
from dragoman.inference.translation.translator import Translator
from dragoman.inspection.subject import Analysed, Loaded
from dragoman.models.kinds import TRANSLATION_MODEL


def load_model(
    folder: str | Path, device: str | None = None, *, task: str | None = None, engine: str = "torch"
) -> Loaded:
    """Load a translation model, a language model or a model that predicts labels of texts, computed with PyTorch.

    task: as in `Predictor.load`. engine: the engine that searches for translations, as in `Translator.load`, in
    float32; everything else is computed with PyTorch. Raises ConfigError for a model of another kind and for an
    exported model, and the errors of the `load` of its class.
    """
    folder = Path(folder)
    kind = TRANSLATION_MODEL if is_exported(folder) else folder_kind(folder)
    if "predict" in kind.verbs:
        return Predictor.load(folder, device, task=task, engine="torch")
    reject_options({"--task": task}, "with a model that predicts the labels of several tasks")
    if "generate" in kind.verbs:
        return LanguageModel.load(folder, device)
    if "translate" in kind.verbs and kind.has_updates:
        return Translator.load(folder, device, engine=engine, precision="float32")
    raise ConfigError(
        f"{folder} is {kind.noun}, which is not a neural network over the tokens of a text: use a translation model, a "
        "language model or a model that predicts labels of texts"
    )


def load_analysed(folder: str | Path, device: str | None = None, *, task: str | None = None) -> Analysed:
    """Load a model as `load_model` does, or one that classifies the nodes of a graph."""
    if not is_exported(Path(folder)) and "classify_nodes" in folder_kind(Path(folder)).verbs:
        reject_options({"--task": task}, "with a model that predicts the labels of several tasks")
        return NodePredictor.load(folder, device)
    return load_model(folder, device, task=task)
