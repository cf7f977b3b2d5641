"""The teacher of a distillation run, which provides the vocabularies and is named on the model card."""

from dataclasses import dataclass

from dragoman.base.log import info
from dragoman.checkpoint.folder import read_config, read_meta
from dragoman.tasks.start.settings import Origin, compare_section
from dragoman.tasks.translation.config import TranslationRun
from dragoman.text.tokenizers import TextConfig, Tokenizers


@dataclass(frozen=True)
class Teacher:
    """The teacher of a run.

    tokenizers: the teacher's tokenizers, extended with the run's tags; None if the run does not use the teacher's
    vocabularies. note: a description of the teacher for the student's model card.
    """

    tokenizers: Tokenizers | None
    note: str


def load_teacher(config: TranslationRun) -> tuple[TranslationRun, Teacher | None]:
    """Read the model folder `train.teacher`, if it is set, and use its `text` section if the run has none.

    A run with a different `text` section learns new vocabularies, and a run with `train.start` uses the vocabularies of
    that model. No parameters are read. Raises ModelError if the folder is not a model folder.
    """
    folder = config.train.teacher
    if folder is None:
        return config, None
    meta, tokenizers = read_meta(folder), Tokenizers.load(folder)
    scores = [f"{score.metric} {score.value:.2f} on {score.data}" for score in meta.scores[:1]]
    note = ", ".join([str(folder), f"step {meta.step:,}", *scores])
    if config.train.start is not None:
        return config, Teacher(None, note)
    origin = Origin("train.teacher", folder, read_config(folder))
    text, differences = compare_section(config, "text", TextConfig, origin)
    if differences:
        info(
            "The student learns its own vocabulary, because its settings differ from the teacher's: "
            f"{', '.join(differences)}."
        )
        return config, Teacher(None, note)
    config = config.model_copy(update={"text": text})
    return config, Teacher(config.with_all_tags(tokenizers), note)
