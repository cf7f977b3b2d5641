"""A model as a server has it: loaded, warm, and one that reads texts."""

from dragoman.base.errors import ConfigError
from dragoman.serving.config import EngineConfig, ModelConfig
from dragoman.translation.translator import Translator

_WARM_UP = ("A", "A short sentence, so that all is ready.")


def load_translator(model: ModelConfig, engine: EngineConfig) -> Translator:
    """Raises ModelError and ConfigError as `Translator.load`, and ConfigError for a model that reads vectors."""
    translator = Translator.load(model.path, engine.device, engine.name, engine.precision, engine.threads)
    translator.report_cut = False
    if translator.tokenizers.reads_vectors:
        raise ConfigError(f"{model.path} reads vectors, and a server is given texts")
    languages = translator.source_tags.languages
    translator.translate(_WARM_UP, to=languages[0] if languages else None)
    return translator
