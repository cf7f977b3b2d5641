"""`MultiTaskTranslation`: translation, and language modelling of the target's text by the same decoder."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn

from dragoman.base.errors import ConfigError
from dragoman.models.interface import Decoder, Output
from dragoman.tasks.language_model.config import LanguageModelLoopConfig, LanguageModelRun, LanguageModelTask
from dragoman.tasks.language_model.job import LanguageModelJob
from dragoman.tasks.multitask.job import MultiTaskJob, temperature_weights
from dragoman.tasks.multitask.members import Member
from dragoman.tasks.translation.config import AuxiliaryLanguageModelConfig, MultiTaskConfig, TranslationRun
from dragoman.tasks.translation.job import TranslationJob
from dragoman.training.config import LoopConfig
from dragoman.training.task import Job


def open_translation(run: TranslationRun) -> Job:
    """The job of a run that learns to translate, and other tasks beside it where it names some."""
    job = TranslationJob(run)
    return job if run.beside is None else MultiTaskTranslation(job, run.beside)


class MultiTaskTranslation(MultiTaskJob):
    """The other tasks learn the vocabulary's entries that translation has, and only those."""

    def __init__(self, translation: TranslationJob, mixture: MultiTaskConfig) -> None:
        """Raises ConfigError and DataError for what is cheap to find wrong with any of the tasks."""
        super().__init__(translation, "translation")
        self._translation, self._mixture = translation, mixture
        if "translation" in mixture.tasks:
            raise ConfigError("beside.tasks has a task called translation, as the run's own is: choose another name")
        run = translation.run
        self._beside = {
            name: LanguageModelJob(_run_of(task, run.train, run.out)) for name, task in mixture.tasks.items()
        }

    def prepare(self) -> None:
        """Translation's pairs and vocabularies, then the other tasks' text with the target's."""
        self._translation.prepare()
        jobs = list(self._beside.values())
        for job in jobs:
            job.use(self._translation.prepared.tokenizers)
            job.prepare()
        weights = [task.weight for task in self._mixture.tasks.values()]
        if self._mixture.temperature is not None:
            tokens = [int(job.lengths[:, -1].sum(dtype=np.int64)) for job in (self._translation, *jobs)]
            weights = temperature_weights(tokens, self._mixture.temperature)[1:]
        for (name, job), weight in zip(self._beside.items(), weights, strict=True):
            self.join(Member(name, job, weight, DecoderAlone.of))
            self._translation.data_beside |= dict(
                zip(map(str, job.run.data.corpora), job.prepared.fingerprints, strict=True)
            )

    def build(self) -> nn.Module:
        """Raises ConfigError where excerpts are longer than the decoder's positions, too."""
        model = self._translation.build()
        for name, job in self._beside.items():
            limit, block = model.limits.target, job.run.data.block
            if limit.positions is not None and block > limit.positions:
                raise ConfigError(
                    f"beside.tasks.{name}: excerpts of {block} tokens, but the model has {limit.positions} target "
                    f"positions ({limit.setting}): lower beside.tasks.{name}.data.block, or raise {limit.setting}"
                )
        return model


@dataclass(frozen=True)
class DecoderAlone:
    """A decoder as a language model: what may follow each of inputs (B, T), without a source."""

    decoder: Decoder

    @classmethod
    def of(cls, model: Any) -> Callable[[Tensor], Output]:
        """The decoder of a translator."""
        return cls(model.decoder)

    def __call__(self, inputs: Tensor) -> Output:
        """inputs: (B, T) int64."""
        return self.decoder.step(inputs, self.decoder.start(None))[0]


def _run_of(task: AuxiliaryLanguageModelConfig, train: LoopConfig, out: Any) -> LanguageModelRun:
    """The task as if it were a run of its own, of which its data and its loss count."""
    loop = {name: getattr(train, name) for name in LoopConfig.model_fields if name not in ("metric", "start")}
    return LanguageModelRun(
        task=LanguageModelTask(),
        data=task.data,
        train=LanguageModelLoopConfig.model_validate({**loop, "objective": task.objective}),
        out=out,
    )
