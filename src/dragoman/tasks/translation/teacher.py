"""The model whose translations a run learns from: its vocabularies are the run's, and the model card names it."""

from dataclasses import dataclass

from dragoman.checkpoint.folder import read_config, read_meta
from dragoman.tasks.translation.config import TranslationRun
from dragoman.tasks.translation.start import Origin, agreed, with_all_tags
from dragoman.text.tokenizers import TextConfig, Tokenizers


@dataclass(frozen=True)
class Teacher:
    """tokenizers: its own, with the tags of the run besides; note: which model it is, for the student's card."""

    tokenizers: Tokenizers
    note: str


def load_teacher(config: TranslationRun) -> tuple[TranslationRun, Teacher | None]:
    """The model of `train.teacher`, if one is set, and the settings with its section text where theirs is left out.

    A run that goes on from a model (`train.start`) keeps that one's. Its parameters are not read. Raises ConfigError
    where the section text says something else than the folder, ModelError for a folder that is none.
    """
    folder = config.train.teacher
    if folder is None:
        return config, None
    meta, tokenizers = read_meta(folder), Tokenizers.load(folder)
    scores = [f"{score.metric} {score.value:.2f} on {score.data}" for score in meta.scores[:1]]
    note = ", ".join([str(folder), f"step {meta.step:,}", *scores])
    if config.train.start is not None:
        return config, Teacher(tokenizers, note)
    text = agreed(config, "text", TextConfig, Origin("train.teacher", folder, read_config(folder)))
    return config.model_copy(update={"text": text}), Teacher(with_all_tags(tokenizers, config, text), note)
