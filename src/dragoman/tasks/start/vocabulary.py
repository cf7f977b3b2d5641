"""The vocabulary of a run on plain text: that of another model, and the tags that the task adds."""

from collections.abc import Iterable
from typing import Any, TypeVar

from dragoman.base.errors import ConfigError
from dragoman.checkpoint.folder import read_config
from dragoman.tasks.estimation import EstimatedRun
from dragoman.tasks.start.settings import stored_text
from dragoman.text.tokenizers import TextConfig, Tokenizers
from dragoman.training.task import RunConfig

R = TypeVar("R", bound=RunConfig | EstimatedRun)


def load_vocabulary(run: R) -> tuple[R, Tokenizers | None]:
    """Read the vocabulary of `data.vocabulary_of`, if it is set, and complete the `text` section from it.

    Raises ConfigError if the run's `text` section contradicts the folder's, ModelError if it is not a model folder.
    """
    settings: Any = run
    folder = settings.data.vocabulary_of
    if folder is None:
        return run, None
    text = stored_text(read_config(folder), folder).one_sided()
    section = type(settings.text)
    if settings.text != section() and settings.text != text:
        raise ConfigError(f"data.vocabulary_of uses the vocabulary of {folder}: remove the text section")
    target = Tokenizers.load(folder).target
    if section is not TextConfig:
        text = section.model_validate(text.model_dump())
    return settings.model_copy(update={"text": text}), Tokenizers(target, target)


def add_tags(run: R, tokenizers: Tokenizers | None, tags: Iterable[str]) -> tuple[R, Tokenizers | None]:
    """Add the tags that a task needs to a vocabulary, or to the settings of one that is not learned yet."""
    if tokenizers is not None:
        return run, tokenizers.with_tags(tuple(dict.fromkeys([*tokenizers.tags, *tags])))
    settings: Any = run
    text = settings.text.model_copy(update={"tags": tuple(dict.fromkeys([*settings.text.tags, *tags]))})
    return settings.model_copy(update={"text": text}), None
