"""`distill`: trains a small, fast model on the translations of a larger one (Kim & Rush 2016)."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.files import unwritable
from dragoman.base.log import info, quietly
from dragoman.base.machine.device import use_threads
from dragoman.base.settings.load import Overrides, all_overrides, load_settings
from dragoman.checkpoint.folder import CONFIG, folder_kind
from dragoman.checkpoint.systems import NEURAL
from dragoman.data.corpora.corpus import FORMS, CorpusConfig
from dragoman.data.corpora.pairs.formats import format_of
from dragoman.data.corpora.readers import read_pairs
from dragoman.data.files.lines import count_lines
from dragoman.data.held_out.sets import HeldOutSets
from dragoman.data.preparation.fingerprint import file_digest
from dragoman.engines.choice import AUTOMATIC
from dragoman.inference.abilities import SupportsLines
from dragoman.inference.load import translator_of
from dragoman.inference.translation.request import Request
from dragoman.inference.translation.result import Translation
from dragoman.tasks.augmentation.filters import FilterConfig
from dragoman.tasks.augmentation.synthesis import KEPT, Line, Synthesis, format_counts
from dragoman.tasks.registry import open_job
from dragoman.tasks.train import train
from dragoman.tasks.translation.config import TranslationRun
from dragoman.tasks.translation.objectives.sequence_reward import sentence_rewards
from dragoman.training.run.folder import check_free, contains_run
from dragoman.training.run.result import TrainingResult


def student_recipe(
    teacher: Path, student: str, out: Path, sources: Sequence[Path] = (), overrides: Overrides = ()
) -> TranslationRun:
    """Return the student's run, whose `data.train` lists the corpora that the teacher will translate.

    The data, text and search settings are copied from the teacher's folder, the model is the preset `student`, and the
    training loop has its default settings; `overrides` are applied last. sources: text files to translate instead of
    the teacher's corpora; each file becomes a corpus with identical sides. The pairs that the teacher's run held out
    are held out from the student, too. Raises ModelError if `teacher` is not a
    model folder, ConfigError for a model that does not translate and for invalid settings, and DataError if a file is
    missing.
    """
    if "teach" not in (kind := folder_kind(teacher)).abilities:
        raise ConfigError(f"{teacher} {kind.refusal('teach')}")
    sections: dict[str, Any] = {
        "model": {"preset": student},
        "train": {"teacher": str(teacher)},
        "auxiliary_tasks": None,
        "out": str(out),
    }
    if sources:
        sections["data.train"] = [{"source": str(path), "target": str(path)} for path in sources]
    if (held_out := HeldOutSets.of_model(teacher)) is not None:
        named = {"data.valid": held_out.valid, "data.test": held_out.test}
        sections |= {
            key: [each.model_dump(mode="json", exclude_defaults=True) for each in sets]
            for key, sets in named.items()
            if sets
        }
        sections |= {"data.held_out": None, "data.cleaning.held_out": True}
    changes = [f"{name}={json.dumps(value)}" for name, value in sections.items()]
    run = load_settings(teacher / CONFIG, all_overrides(changes, overrides), TranslationRun)
    if run.text.vectors is not None:
        raise ConfigError(f"{teacher} translates feature vectors: only a model that translates text can be distilled")
    _check_files(run, teacher)
    return run


def _check_files(run: TranslationRun, teacher: Path) -> None:
    """Raise DataError if a file of the corpora is missing."""
    for key, path in (*_files("data.train", run.data.train), *_files("data.valid", run.data.valid or ())):
        if not path.exists():
            alternative = ", or choose any text in the source language with --source FILE" if ".train" in key else ""
            raise DataError(
                f"the file {path}, which is {key} in {teacher / CONFIG}, does not exist. If it has moved, set its new "
                f"path with {key}=FILE{alternative}"
            )


def _files(key: str, corpora: CorpusConfig | Sequence[CorpusConfig]) -> Iterator[tuple[str, Path]]:
    """Yield the name of the setting and the path of each file."""
    if not isinstance(corpora, CorpusConfig):
        for number, corpus in enumerate(corpora):
            yield from _files(f"{key}.{number}", corpus)
        return
    for name in ("source", "target", *FORMS):
        if (path := getattr(corpora, name)) is not None:
            yield f"{key}.{name}", path


@dataclass(frozen=True)
class TeacherPairs(Synthesis):
    """Generates pairs of a source and the teacher's translation (Kim & Rush 2016, sections 3.2 and 3.3).

    closest: whether to use the hypothesis with the highest sentence BLEU against the reference ("sequence-level
    interpolation", Kim & Rush 2016, section 3.3) instead of the most probable hypothesis. language: the target
    language, which determines the tokeniser of BLEU; None: by each reference.
    """

    model: Path
    corpus: CorpusConfig
    output: Path
    request: Request
    filters: FilterConfig
    batch_size: int
    closest: bool = False
    language: str | None = None

    @property
    def origin(self) -> Path:
        """The first file of the corpus."""
        return self.corpus.files[0]

    def read(self) -> Iterator[Line]:
        """Yield the sources."""
        for pair in read_pairs(self.corpus):
            yield Line(pair.source, pair.target if self.closest else "")

    def count(self) -> int | None:
        """Return the number of sources, or None if they are not in lines, so that counting would require parsing."""
        has_lines = self.corpus.pairs is None or format_of(self.corpus.pairs) in (None, "jsonl")
        return count_lines(self.origin) if has_lines else None

    def select_translation(self, line: Line, translations: Sequence[Translation]) -> Translation:
        """Return the most probable translation, or the one closest to the reference if there is a reference.

        Of several equally close translations, the most probable one is returned.
        """
        if not line.reference.strip():
            return translations[0]
        texts, references = [each.text for each in translations], [line.reference] * len(translations)
        scores = sentence_rewards("bleu", texts, references, self.language)
        return translations[scores.index(max(scores))]

    def pair(self, line: Line, translation: str) -> tuple[str, str]:
        """Return the source and its translation."""
        return line.text, translation


FOLDER = "distilled"
"""Name of the folder with translations, next to the run folder so that other students of the teacher can reuse them."""


@dataclass(frozen=True)
class Distillation:
    """The teacher, the student's recipe, and the search settings of a distillation.

    recipe: as returned by `student_recipe`; the teacher translates the sources of its `data.train`. beam: beam size;
    None for the teacher's setting. closest: see `TeacherPairs`. originals: whether the student also learns from the
    original corpora. precision: number format of the teacher's computations; None for the format of its parameters.
    divide: as in `Translator.request`.
    """

    teacher: Path
    recipe: TranslationRun
    beam: int | None = None
    closest: bool = False
    originals: bool = False
    batch_size: int = 64
    precision: str | None = None
    divide: bool = True

    def check(self, resume: bool) -> None:
        """Run all checks that are possible before translation.

        Raises ConfigError if the run folder already contains a run and `resume` is False, and all errors of `open_job`.
        """
        out = self.recipe.out
        check_free(out)
        if not resume and contains_run(out):
            raise ConfigError(
                f"{out} already contains a training run: add --resume to resume it, or choose another --out"
            )
        open_job(self.recipe).close()

    def teacher_pairs(self, translator: SupportsLines) -> tuple[TeacherPairs, ...]:
        """Return the pairs to generate, one `TeacherPairs` per corpus. translator: the teacher."""
        folder = self.recipe.out.parent / FOLDER
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(folder, error) from error
        return tuple(self._pairs(corpus, translator, folder) for corpus in self.recipe.data.corpora)

    def student_run(self, corpora: Sequence[TeacherPairs]) -> TranslationRun:
        """Return the student's run, whose training corpora are the generated pairs."""
        originals = self.recipe.data.corpora if self.originals else ()
        data = self.recipe.data.model_copy(update={"train": (*map(_corpus, corpora), *originals)})
        return self.recipe.model_copy(update={"data": data})

    def _pairs(self, corpus: CorpusConfig, translator: SupportsLines, folder: Path) -> TeacherPairs:
        """Return the pairs of a corpus. Their file is named by a digest of everything that determines its contents."""
        chosen = {"beam": self.beam, "to": corpus.target_language, "tags": corpus.tags, "divide": self.divide}
        request = translator.request(**chosen)
        if self.closest:
            request = translator.request(nbest=request.decoding.beam, **chosen)
        cleaning = self.recipe.data.cleaning
        # Copied lines are not dropped, so that the student learns to copy names as the teacher does.
        filters = FilterConfig(copied=None, max_tokens=cleaning.max_tokens if cleaning.enabled else None)
        language = translator.target_language(request.tags)
        pairs = TeacherPairs(self.teacher, corpus, folder, request, filters, self.batch_size, self.closest, language)
        files = [file_digest(path, folder) for path in corpus.files]
        settings = {name: value for name, value in pairs.settings().items() if name != "batch_size"}
        inputs = json.dumps([settings, repr(corpus.selection), self.closest, self.precision, files], sort_keys=True)
        name = hashlib.sha256(inputs.encode()).hexdigest()[:16]
        return replace(pairs, output=folder / f"{name}.tsv")


def _corpus(pairs: TeacherPairs) -> CorpusConfig:
    """Return the generated corpus, with the weight, language and tags of the original."""
    corpus = pairs.corpus
    return CorpusConfig(
        pairs=pairs.output,
        format="tsv",
        source_column=1,
        target_column=2,
        header=False,
        name=f"{corpus}, translated by {pairs.model}",
        weight=corpus.weight,
        tags=corpus.tags,
        target_language=corpus.target_language,
    )


CHOICES = ("best", "closest")


def distill(
    teacher: str | Path,
    student: str,
    out: str | Path,
    overrides: Overrides = (),
    *,
    source: Sequence[str | Path] = (),
    beam: int | None = None,
    choice: str = "best",
    originals: bool = False,
    resume: bool = False,
    divide: bool = True,
    batch_size: int = 64,
    engine: str = "auto",
    precision: str | None = None,
    device: str | None = None,
    threads: int | None = None,
    quiet: bool = False,
) -> TrainingResult:
    """Train a small model on the translations of a larger one, as `dragoman distill` does (Kim & Rush 2016).

    teacher: folder of the larger model. student: preset of the smaller model. out: run folder. overrides: settings of
    the student's recipe, as in `train`. source: files to translate instead of the teacher's training corpora. beam:
    beam size of the teacher; by default, the size in its settings. choice: `best` for the most probable translation, or
    `closest` for the translation that is closest to the reference. originals: whether the student also learns from the
    original corpora. resume: whether to resume an interrupted call with the same arguments. divide: whether the
    teacher translates lines of several sentences sentence by sentence. The other arguments are
    passed to `Translator.load` for the teacher, whose precision `auto` is float32 on a CPU, so that the translations do
    not depend on the processor.

    Raises ConfigError for contradictory arguments, DataError if files are missing or the filters drop all pairs, and
    all errors of `train`.

    >>> from dragoman import distill
    >>> small = {"model.width": 32, "model.encoder.layers": 1, "train.max_steps": 2}
    >>> result = distill("runs/ende", "tiny-fast", "runs/student", small, source=["test.en"], beam=1, quiet=True)
    >>> result.folder
    PosixPath('runs/student')
    """
    use_threads(threads)
    precision = None if precision == AUTOMATIC else precision
    teacher, sources = Path(teacher), [Path(each) for each in source]
    if choice not in CHOICES:
        raise ConfigError(f"unknown choice {choice!r}: expected one of {', '.join(CHOICES)}")
    if sources and (originals or choice == "closest"):
        option = "--originals" if originals else "--choice closest"
        raise ConfigError(f"{option} needs references, which --source does not have: remove one of the two options")
    with quietly(quiet):
        recipe = student_recipe(teacher, student, Path(out), sources, overrides)
        distillation = Distillation(
            teacher, recipe, beam, choice == "closest", originals, batch_size, precision, divide
        )
        distillation.check(resume)
        translator = translator_of(  # the neural system, whose vocabularies the student has
            teacher, device, engine=engine, precision=precision, threads=threads, system=NEURAL
        )
        translator.warn_unfinished = False  # the filters count truncated translations
        corpora = distillation.teacher_pairs(translator)
        for pairs in corpora:
            _translate(pairs, translator)
        del translator
        return train(distillation.student_run(corpora), resume=resume)


def _translate(pairs: TeacherPairs, translator: SupportsLines) -> None:
    """Generate the pairs of a corpus unless they already exist. Raises DataError if the filters drop all pairs."""
    if pairs.is_finished:
        info(f"Reusing translations of {pairs.corpus}: {pairs.output}")
        return
    info(f"Translating {pairs.corpus} with {pairs.model}. To resume after an interruption, repeat the same command.")
    counts = pairs.run(translator)
    info(format_counts(counts))
    if not counts[KEPT]:
        pairs.output.unlink()
        raise DataError(f"the filters dropped all translations of {pairs.corpus} by {pairs.model}")
