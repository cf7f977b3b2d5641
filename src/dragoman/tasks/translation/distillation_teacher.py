"""The teacher of a distillation run: it provides the vocabularies, and the model card names it."""

from dataclasses import dataclass

from dragoman.base.log import info
from dragoman.checkpoint.folder import read_config, read_meta
from dragoman.tasks.start import Origin, compare_section
from dragoman.tasks.translation.config import TranslationRun
from dragoman.text.tokenizers import TextConfig, Tokenizers


@dataclass(frozen=True)
class Teacher:
    """The teacher of a run.

    tokenizers: the teacher's, with the additional tags of the run; None if the run learns its own. note: a
    description of the teacher for the student's model card.
    """

    tokenizers: Tokenizers | None
    note: str


def load_teacher(config: TranslationRun) -> tuple[TranslationRun, Teacher | None]:
    """Read the model of `train.teacher`, if it is set, and use its section `text` if the run has none.

    A run with a different section `text` learns its own vocabularies, and a run with `train.start` uses that model's
    vocabularies. No parameters are read. Raises ModelError if the folder is not a model folder.
    """
    folder = config.train.teacher
    if folder is None:
        return config, None
    meta, tokenizers = read_meta(folder), Tokenizers.load(folder)
    scores = [f"{score.metric} {score.value:.2f} on {score.data}" for score in meta.scores[:1]]
    note = ", ".join([str(folder), f"step {meta.step:,}", *scores])
    if config.train.start is not None:
        return config, Teacher(None, note)
    text, different = compare_section(config, "text", TextConfig, Origin("train.teacher", folder, read_config(folder)))
    if different:
        info(f"The student learns its own vocabulary: {', '.join(different)}.")
        return config, Teacher(None, note)
    config = config.model_copy(update={"text": text})
    return config, Teacher(config.with_all_tags(tokenizers), note)
