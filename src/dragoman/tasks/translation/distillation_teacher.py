"""The model whose translations a run learns from: its vocabularies are the run's, and the model card names it."""

from dataclasses import dataclass

from dragoman.base.log import info
from dragoman.checkpoint.folder import read_config, read_meta
from dragoman.tasks.start import Origin, compared
from dragoman.tasks.translation.config import TranslationRun
from dragoman.text.tokenizers import TextConfig, Tokenizers


@dataclass(frozen=True)
class Teacher:
    """tokenizers: its own, with the tags of the run besides; None where the run has others.

    note: which model it is, for the student's card.
    """

    tokenizers: Tokenizers | None
    note: str


def load_teacher(config: TranslationRun) -> tuple[TranslationRun, Teacher | None]:
    """The model of `train.teacher`, if one is set, and the settings with its section text where theirs is left out.

    A run whose section text says something else learns vocabularies of its own, one that goes on from a model
    (`train.start`) keeps that one's. No parameters are read. Raises ModelError for a folder that is none.
    """
    folder = config.train.teacher
    if folder is None:
        return config, None
    meta, tokenizers = read_meta(folder), Tokenizers.load(folder)
    scores = [f"{score.metric} {score.value:.2f} on {score.data}" for score in meta.scores[:1]]
    note = ", ".join([str(folder), f"step {meta.step:,}", *scores])
    if config.train.start is not None:
        return config, Teacher(None, note)
    text, different = compared(config, "text", TextConfig, Origin("train.teacher", folder, read_config(folder)))
    if different:
        info(f"The student learns a vocabulary of its own: {', '.join(different)}.")
        return config, Teacher(None, note)
    config = config.model_copy(update={"text": text})
    return config, Teacher(config.with_all_tags(tokenizers), note)
