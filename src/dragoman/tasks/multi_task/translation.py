"""`MultiTaskTranslation`, translation together with language modelling of target-language text by the same decoder."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.base.errors import ConfigError
from dragoman.base.packing import Packing
from dragoman.checkpoint.verdict import Verdict
from dragoman.data.batches.plan import BatchPlan
from dragoman.data.held_out.check import Finding
from dragoman.models.description.describe import count_decoder_operations
from dragoman.models.families.family import prefix_errors
from dragoman.models.interface import Decoder, Output
from dragoman.models.kinds.decoder_only import next_tokens
from dragoman.tasks.corpora.job import packing_obstacle
from dragoman.tasks.corpora.prepared_folder import prepared_folder
from dragoman.tasks.language_model.config import LanguageModelLoopConfig, LanguageModelRun, LanguageModelTask
from dragoman.tasks.language_model.job import LanguageModelJob
from dragoman.tasks.multi_task.members import TaskBatch, TaskMember
from dragoman.tasks.multi_task.mixture import TaskMixture, plans_for
from dragoman.tasks.multi_task.plan import MixedBatches
from dragoman.tasks.translation.config import AuxiliaryLanguageModelConfig, AuxiliaryTasksConfig, TranslationRun
from dragoman.tasks.translation.job import TranslationJob
from dragoman.training.config import LoopConfig
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.task import Job, Validator
from dragoman.training.validation import Validation

_SECTION = "auxiliary_tasks.tasks"
TRANSLATION = "translation"
"""The name of the main task."""


def open_translation(run: TranslationRun) -> Job:
    """Open the job of a translation run, together with its auxiliary tasks if it has any."""
    job = TranslationJob(run)
    return job if run.auxiliary_tasks is None else MultiTaskTranslation(job, run.auxiliary_tasks)


class AuxiliaryJob(LanguageModelJob):
    """A language-model task that trains the decoder of a translation model."""

    def __init__(self, translation: TranslationJob, run: LanguageModelRun, name: str) -> None:
        super().__init__(run)
        self._translation, self.task_name = translation, name

    @property
    def packing_obstacle(self) -> str | None:
        """See `Job.packing_obstacle`. The decoder packs if the translation model does."""
        return packing_obstacle(self._translation.run.model, self.run.train)

    def flops_per_target_token(self) -> float:
        """Return the FLOPs of the translation model's decoder, for blocks of mean length."""
        translation = self._translation
        length = max(1, round(float(self.lengths.mean())))
        passes = int(self.run.train.objective.passes)
        return passes * count_decoder_operations(translation.run.model, translation.tokenizers.sizes, length)


class MultiTaskTranslation(TaskMixture):
    """Translation, the main task, with auxiliary tasks, which use the translation model's target vocabulary.

    Every update minimises Σ λ_t L_t and consists of `train.accumulate` batches of each task. Translation determines the
    epochs, the model, the model folder and the best checkpoint.
    """

    def __init__(self, translation: TranslationJob, config: AuxiliaryTasksConfig) -> None:
        """Run the cheap checks of all tasks, and open their jobs. Raises ConfigError and DataError."""
        self._translation, self._config = translation, config
        self._members = [TaskMember(TRANSLATION, translation, 1.0, lambda model: model)]
        if TRANSLATION in config.tasks:
            raise ConfigError(f"{_SECTION}: the name translation is reserved for the main task: choose another name")
        run = translation.run
        self._auxiliary = {
            name: AuxiliaryJob(translation, _language_model_run(task, run.train, run.out), name)
            for name, task in config.tasks.items()
        }

    @property
    def run(self) -> Any:
        """The run of translation."""
        return self._translation.run

    @run.setter
    def run(self, run: Any) -> None:
        self._translation.run = run

    @property
    def notes(self) -> Mapping[str, float]:
        """The notes of translation."""
        return self._translation.notes

    @notes.setter
    def notes(self, notes: Mapping[str, float]) -> None:
        self._translation.notes = notes

    def check_initial_values(self) -> None:
        """Check the initial values of translation."""
        self._translation.check_initial_values()

    def choose_batches(self, packed: bool, few_shapes: bool) -> None:
        """Choose the batches of all tasks, and store the choices with the run."""
        self._translation.choose_batches(packed, few_shapes)
        tasks = {}
        for name, task in self._config.tasks.items():
            job = self._auxiliary[name]
            with prefix_errors(f"{_SECTION}.{name}"):
                job.choose_batches(packed, few_shapes)
            data = task.data.model_copy(update={"batch": job.run.data.batch, "held_out": job.run.data.held_out})
            tasks[name] = task.model_copy(update={"data": data})
        self.run = self.run.model_copy(update={"auxiliary_tasks": self._config.model_copy(update={"tasks": tasks})})

    def check_held_out(self) -> Iterator[Finding]:
        """Yield the problems of the held-out pairs of translation and of the held-out text of the auxiliary tasks."""
        for job in (self._translation, *self._auxiliary.values()):
            yield from job.check_held_out()

    def prepare(self) -> None:
        """Prepare the sentence pairs and vocabularies of translation, then the text of the auxiliary tasks.

        The targets that translation holds out, and what each task holds out, are left out of all text.
        """
        self._translation.prepare()
        jobs = list(self._auxiliary.values())
        held_out = self._translation.held_out_targets
        for job in jobs:
            held_out = job.hold_out(held_out)
        for job in jobs:
            job.leave_out(held_out)
        for name, job in self._auxiliary.items():
            job.use_batches(self.run.auxiliary_tasks.tasks[name].data.batch)  # a resumed run has stored choices
            job.use_tokenizers(self._translation.tokenizers)
            job.prepare()
        weights = [task.weight for task in self._config.tasks.values()]
        if self._config.temperature is not None:
            tokens = [int(job.lengths[:, -1].sum(dtype=np.int64)) for job in (self._translation, *jobs)]
            weights = temperature_weights(tokens, self._config.temperature)[1:]
        for (name, job), weight in zip(self._auxiliary.items(), weights, strict=True):
            self._members.append(TaskMember(name, job, weight, DecoderLanguageModel.from_translator))
            self._translation.auxiliary_data |= dict(
                zip(map(str, job.run.data.corpora), job.prepared.fingerprints, strict=True)
            )
        self.tasks = tuple(each.name for each in self._members)

    def build(self) -> nn.Module:
        """Build the translation model. Raises ConfigError if a block is longer than the decoder allows."""
        model = self._translation.build()
        for name, job in self._auxiliary.items():
            limit, block = model.limits.target, job.run.data.block
            if limit.positions is not None and block > limit.positions:
                raise ConfigError(
                    f"{_SECTION}.{name}.data.block is {block} tokens, but the model has {limit.positions} target "
                    f"positions ({limit.setting}): lower data.block, or raise {limit.setting}"
                )
        return model

    def initialise(self, model: Any) -> Mapping[str, float]:
        """Initialise the model as for translation alone."""
        return self._translation.initialise(model)

    @property
    def model_width(self) -> int:
        """The model width d."""
        return self._translation.model_width

    def store_inputs(self) -> None:
        """See `Job.store_inputs`; translation stores its held-out pairs, and the other tasks their documents."""
        for job in (self._translation, *self._auxiliary.values()):
            job.store_inputs()

    def outline(self, model: nn.Module) -> str:
        """Return the outline of translation, and the number of examples and λ of each other task."""
        others = [f"{member.name}: {member.job.examples:,} · λ {member.weight:.3g}" for member in self._members[1:]]
        return " · ".join([self._translation.outline(model), *others])

    def write(
        self,
        folder: Path,
        parameters: Mapping[str, Tensor],
        step: int,
        validation: Validation | None,
        averaged_steps: tuple[int, ...] = (),
    ) -> None:
        """Write the parameters as a model folder of translation."""
        self._translation.write(folder, parameters, step, validation, averaged_steps)

    def card_samples(self) -> Mapping[str, Sequence[str]]:
        """Return texts of translation."""
        return self._translation.card_samples()

    def activation_bytes(self, model: Any, tokens: int, free: int) -> int:
        """Return the estimate of translation, which uses the whole model."""
        return self._translation.activation_bytes(model, tokens, free)

    def plan(self, epoch: int) -> BatchPlan:
        """Plan an epoch in which the batches of all tasks alternate."""
        first = self._translation.plan(epoch)
        plans = [[first], *(plans_for(member.job, epoch, len(first)) for member in self._members[1:])]
        order = np.tile(np.arange(len(plans)), len(first))
        return BatchPlan(MixedBatches(plans, self._starts, order), first.padding_waste)

    def padding(self, plan: BatchPlan) -> str:
        """Return a note on the fraction of padding in the batches of translation."""
        return f"{self._translation.padding(plan)} in the task {TRANSLATION}"

    @property
    def batches_per_update(self) -> int:
        """Number of batches per update; each task contributes the same number."""
        return self._translation.batches_per_update * len(self._members)

    def trial(self, model: Any) -> TaskBatch:
        """Return a trial batch of translation, which uses the whole model."""
        return TaskBatch(TRANSLATION, self._translation.trial(model))

    def validator(self, model: Any, device: torch.device) -> "MainTaskValidator":
        """Return a validator for all tasks."""
        return MainTaskValidator(
            {member.name: member.job.validator(member.part(model), device) for member in self._members}
        )

    def begin(self) -> None:
        """See `Job.begin`."""
        self._translation.begin()

    def measure(self, folder: Path, validation: Validation) -> Verdict | None:
        """See `Job.measure`; measured by translation."""
        self._translation.deadline = self.deadline
        return self._translation.measure(folder, validation)

    def measuring_seconds(self, limit: float, validation: float) -> float:
        """See `Job.measuring_seconds`."""
        return self._translation.measuring_seconds(limit, validation)

    @property
    def _scratch(self) -> Path:
        """The folder for temporary files."""
        return prepared_folder(self.run.out)


@dataclass(frozen=True)
class MainTaskValidator:
    """Validates a model on all tasks, of which the first is the main task.

    Only the first task's scores affect the run. The names of the other scores start with the names of their tasks.
    """

    validators: Mapping[str, Validator]

    def run(self, runtime: Runtime) -> Validation:
        """Validate the model on all tasks."""
        (_, first), *others = self.validators.items()
        validation = first.run(runtime)
        scores = list(validation.scores)
        seconds = validation.seconds
        for name, validator in others:
            other = validator.run(runtime)
            seconds += other.seconds
            scores += [
                replace(score, key=f"{name}_{score.key}", name=f"{name} {score.name}", better=None)
                for score in other.scores
            ]
        return replace(validation, scores=tuple(scores), seconds=seconds)


def temperature_weights(tokens: Sequence[int], temperature: float) -> list[float]:
    """Return λ_t = (n_t / n_1)^(1/T) for each task t with n_t target tokens; λ_1 = 1 (Arivazhagan et al. 2019)."""
    return [(count / tokens[0]) ** (1 / temperature) for count in tokens]


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
