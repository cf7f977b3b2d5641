"""The vocabulary of another model, for a language model that shall choose tokens together with it."""

from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import parse_settings
from dragoman.checkpoint.folder import read_config
from dragoman.tasks.language_model.config import LanguageModelRun
from dragoman.text.tokenizers import TextConfig, Tokenizers


def load_vocabulary(run: LanguageModelRun) -> tuple[LanguageModelRun, Tokenizers | None]:
    """The vocabulary of `data.vocabulary_of`, if it is set, and the settings that say what it is.

    Raises ConfigError where the section text says something else than that model's, ModelError for a folder that is
    none.
    """
    folder = run.data.vocabulary_of
    if folder is None:
        return run, None
    section = read_config(folder).get("text") or {}
    subword = parse_settings(section, TextConfig, f"in section text of {folder}").subword
    if run.text not in (TextConfig(), TextConfig(subword=subword)):
        raise ConfigError(f"data.vocabulary_of takes the vocabulary of {folder}: leave out the section text")
    target = Tokenizers.load(folder).target
    return run.model_copy(update={"text": TextConfig(subword=subword)}), Tokenizers(target, target)
