"""`Distillation`: a teacher translates the training text, and a student learns from that (Kim & Rush 2016)."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dragoman.augmentation.backtranslation.filters import FilterConfig
from dragoman.augmentation.distillation.pairs import TeacherPairs
from dragoman.base.errors import ConfigError
from dragoman.base.files import unwritable
from dragoman.checkpoint.folder import CONFIG
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.preparation.fingerprint import file_digest
from dragoman.tasks.kinds import open_job
from dragoman.tasks.translation.config import TranslationRun
from dragoman.translation.translator import Translator

FOLDER = "distilled"
"""Of translations, beside the run folder: whoever learns from the same ones, another student, finds them there."""


@dataclass(frozen=True)
class Distillation:
    """recipe: as `student_recipe` gives it, `data.train` being the corpora whose sources are translated.

    beam: hypotheses kept a sentence, None for the teacher's own setting. closest: as of `TeacherPairs`. originals:
    whether the student learns from the corpora themselves too. precision: that the teacher computes in, None for exact.
    """

    teacher: Path
    recipe: TranslationRun
    beam: int | None = None
    closest: bool = False
    originals: bool = False
    batch_size: int = 64
    precision: str | None = None

    def check(self, resume: bool) -> None:
        """Look at all that is cheap to find wrong before anything is translated.

        Raises ConfigError where the run folder holds a run that is not to be resumed, and what opening the run raises.
        """
        out = self.recipe.out
        if not resume and (out / CONFIG).exists():
            raise ConfigError(
                f"{out} holds a training run already: add --resume to go on with it, or choose another --out"
            )
        open_job(self.recipe).close()

    def work(self, translator: Translator) -> tuple[TeacherPairs, ...]:
        """What there is to translate, a corpus each. translator: the teacher."""
        folder = self.recipe.out.parent / FOLDER
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(folder, error) from error
        return tuple(self._pairs(corpus, translator, folder) for corpus in self.recipe.data.corpora)

    def student(self, work: Sequence[TeacherPairs]) -> TranslationRun:
        """The student's run, once all the work is done."""
        originals = self.recipe.data.corpora if self.originals else ()
        data = self.recipe.data.model_copy(update={"train": (*map(_corpus, work), *originals)})
        return self.recipe.model_copy(update={"data": data})

    def _pairs(self, corpus: CorpusConfig, translator: Translator, folder: Path) -> TeacherPairs:
        """Its output is named by all that it depends on."""
        beam = translator.search_config(beam=self.beam).beam
        request = translator.request(
            beam=beam, nbest=beam if self.closest else 1, to=corpus.target_language, tags=corpus.tags
        )
        cleaning = self.recipe.data.cleaning
        # copies stay: what the teacher does with a name, or a line of another language, the student shall do too
        filters = FilterConfig(copied=None, max_tokens=cleaning.max_tokens if cleaning.enabled else None)
        pairs = TeacherPairs(self.teacher, corpus, folder, request, filters, self.batch_size, self.closest)
        files = [file_digest(path, folder) for path in corpus.files]
        decisive = {name: value for name, value in pairs.settings().items() if name != "batch_size"}
        whole = json.dumps([decisive, repr(corpus.selection), self.closest, self.precision, files], sort_keys=True)
        name = hashlib.sha256(whole.encode()).hexdigest()[:16]
        return replace(pairs, output=folder / f"{name}.tsv")


def _corpus(pairs: TeacherPairs) -> CorpusConfig:
    """What is learned in the place of a corpus: it counts as much, and for the same language and tags."""
    corpus = pairs.corpus
    return CorpusConfig(
        tsv=pairs.output,
        name=f"{corpus}, translated by {pairs.model}",
        weight=corpus.weight,
        tags=corpus.tags,
        target_language=corpus.target_language,
    )
