"""`MultiTaskTranslation`, translation together with language modelling of target-language text by the same decoder."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn

from dragoman.base.errors import ConfigError
from dragoman.base.packing import Packing
from dragoman.data.held_out.check import Finding
from dragoman.models.architectures.language_model import next_tokens
from dragoman.models.assembly import prefix_errors
from dragoman.models.description.describe import count_decoder_operations
from dragoman.models.interface import Decoder, Output
from dragoman.tasks.corpus_job import packing_obstacle
from dragoman.tasks.language_model.config import LanguageModelLoopConfig, LanguageModelRun, LanguageModelTask
from dragoman.tasks.language_model.job import LanguageModelJob
from dragoman.tasks.multitask.job import MultiTaskJob, temperature_weights
from dragoman.tasks.multitask.members import Member
from dragoman.tasks.translation.config import AuxiliaryLanguageModelConfig, MultiTaskConfig, TranslationRun
from dragoman.tasks.translation.job import TranslationJob
from dragoman.training.config import LoopConfig
from dragoman.training.task import Job

_SECTION = "auxiliary_tasks.tasks"


def open_translation(run: TranslationRun) -> Job:
    """Open the job of a translation run, together with its auxiliary tasks if it has any."""
    job = TranslationJob(run)
    return job if run.auxiliary_tasks is None else MultiTaskTranslation(job, run.auxiliary_tasks)


class AuxiliaryJob(LanguageModelJob):
    """A language-model task that trains the decoder of a translation model."""

    def __init__(self, translation: TranslationJob, run: LanguageModelRun) -> None:
        super().__init__(run)
        self._translation = translation

    @property
    def packing_obstacle(self) -> str | None:
        """See `Job.packing_obstacle`. The decoder packs if the translation model does."""
        return packing_obstacle(self._translation.run.model, self.run.train)

    def flops_per_target_token(self) -> float:
        """Return the FLOPs of the translation model's decoder, for excerpts of mean length."""
        translation = self._translation
        length = max(1, round(float(self.lengths.mean())))
        passes = int(self.run.train.objective.passes)
        return passes * count_decoder_operations(translation.run.model, translation.tokenizers.sizes, length)


class MultiTaskTranslation(MultiTaskJob):
    """Translation with auxiliary tasks, which use the translation model's target vocabulary."""

    def __init__(self, translation: TranslationJob, config: MultiTaskConfig) -> None:
        """Run the cheap checks of all tasks, and open their jobs. Raises ConfigError and DataError."""
        super().__init__(translation, "translation")
        self._translation, self._config = translation, config
        if "translation" in config.tasks:
            raise ConfigError(f"{_SECTION}: the name translation is reserved for the main task: choose another name")
        run = translation.run
        self._auxiliary = {
            name: AuxiliaryJob(translation, _language_model_run(task, run.train, run.out))
            for name, task in config.tasks.items()
        }

    def choose_batches(self, packed: bool, few_shapes: bool) -> None:
        """Choose the batches of all tasks, and store the choices with the run."""
        super().choose_batches(packed, few_shapes)
        tasks = {}
        for name, task in self._config.tasks.items():
            job = self._auxiliary[name]
            with prefix_errors(f"{_SECTION}.{name}"):
                job.choose_batches(packed, few_shapes)
            data = task.data.model_copy(update={"batch": job.run.data.batch})
            tasks[name] = task.model_copy(update={"data": data})
        self.run = self.run.model_copy(update={"auxiliary_tasks": self._config.model_copy(update={"tasks": tasks})})

    def check_held_out(self) -> Iterator[Finding]:
        """Yield the problems of the held-out pairs of translation and of the held-out text of the auxiliary tasks."""
        for job in (self._translation, *self._auxiliary.values()):
            yield from job.check_held_out()

    def prepare(self) -> None:
        """Prepare the sentence pairs and vocabularies of translation, then the text of the auxiliary tasks."""
        self._translation.prepare()
        jobs = list(self._auxiliary.values())
        for name, job in self._auxiliary.items():
            job.use_batches(self.run.auxiliary_tasks.tasks[name].data.batch)  # a resumed run has stored choices
            job.use_tokenizers(self._translation.tokenizers)
            job.prepare()
        weights = [task.weight for task in self._config.tasks.values()]
        if self._config.temperature is not None:
            tokens = [int(job.lengths[:, -1].sum(dtype=np.int64)) for job in (self._translation, *jobs)]
            weights = temperature_weights(tokens, self._config.temperature)[1:]
        for (name, job), weight in zip(self._auxiliary.items(), weights, strict=True):
            self.join(Member(name, job, weight, DecoderLanguageModel.from_translator))
            self._translation.auxiliary_data |= dict(
                zip(map(str, job.run.data.corpora), job.prepared.fingerprints, strict=True)
            )

    def build(self) -> nn.Module:
        """Build the translation model. Raises ConfigError if an excerpt is longer than the decoder allows."""
        model = self._translation.build()
        for name, job in self._auxiliary.items():
            limit, block = model.limits.target, job.run.data.block
            if limit.positions is not None and block > limit.positions:
                raise ConfigError(
                    f"{_SECTION}.{name}.data.block is {block} tokens, but the model has {limit.positions} target "
                    f"positions ({limit.setting}): lower data.block, or raise {limit.setting}"
                )
        return model


@dataclass(frozen=True)
class DecoderLanguageModel:
    """A translation model's decoder used as a language model, without a source."""

    decoder: Decoder

    @classmethod
    def from_translator(cls, model: Any) -> Callable[[Tensor], Output]:
        """Return the decoder of a translation model as a language model."""
        return cls(model.decoder)

    def __call__(self, inputs: Tensor, packing: Packing | None = None) -> Output:
        """Return the predictions of the next token after each of the inputs (B, T) int64. packing: packs the states."""
        return next_tokens(self.decoder, inputs, packing)


def _language_model_run(task: AuxiliaryLanguageModelConfig, train: LoopConfig, out: Any) -> LanguageModelRun:
    """Return the config of a run for an auxiliary task. Only the run's data and its objective are used."""
    excluded = ("metric", "start", "start_parts")
    loop = {name: getattr(train, name) for name in LoopConfig.model_fields if name not in excluded}
    return LanguageModelRun(
        task=LanguageModelTask(),
        data=task.data,
        train=LanguageModelLoopConfig.model_validate({**loop, "objective": task.objective}),
        out=out,
    )
