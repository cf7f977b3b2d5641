"""`MultiTaskJob`, a job that trains one encoder with several heads, one for each task."""

from collections.abc import Iterator, Mapping
from itertools import chain
from operator import methodcaller
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dragoman.checkpoint.meta import Meta
from dragoman.data.batches.plan import BatchPlan
from dragoman.data.held_out.check import Finding
from dragoman.data.held_out.texts import NO_KEYS
from dragoman.models.heads.union import SeveralHeadsConfig
from dragoman.models.parts import count_parameters
from dragoman.tasks.corpora.job import activation_bytes
from dragoman.tasks.labelled.card import training_facts, write_training_section
from dragoman.tasks.labelled.config import validation_interval
from dragoman.tasks.labelled.job import LabelledJob
from dragoman.tasks.labelled.jobs import AnsweringJob, ClassificationJob, RegressionJob, TaggingJob
from dragoman.tasks.labelled.parsing import ParsingJob
from dragoman.tasks.multi_task.config import MultiTaskRun
from dragoman.tasks.multi_task.masked_language_model import MaskedMemberJob
from dragoman.tasks.multi_task.members import TaskBatch, TaskMember
from dragoman.tasks.multi_task.mixture import TaskMixture, plans_for
from dragoman.tasks.multi_task.plan import MixedBatches
from dragoman.tasks.multi_task.validator import TasksValidator, TaskValidator
from dragoman.tasks.start.encoder import fill_encoder, has_same_head, load_encoder
from dragoman.tasks.start.settings import StartedRun
from dragoman.text.tokenizers import Tokenizers, train_tokenizers
from dragoman.training.validation import Validation

_MemberJob = LabelledJob | MaskedMemberJob
_JOBS: dict[str, type[LabelledJob] | type[MaskedMemberJob]] = {
    "classification": ClassificationJob,
    "regression": RegressionJob,
    "tagging": TaggingJob,
    "question_answering": AnsweringJob,
    "parsing": ParsingJob,
    "masked_language_model": MaskedMemberJob,
}


class MultiTaskJob(TaskMixture):
    """The job of a run with several labelled tasks. The tasks are equal: there is no main task."""

    run: MultiTaskRun
    unit = "labels"

    def __init__(self, run: MultiTaskRun) -> None:
        started = load_encoder(run)
        self._tokenizers = started.tokenizers
        super().__init__(started.run, started.start)
        self._jobs: dict[str, _MemberJob] = {}
        for name, task in self.run.tasks.items():
            alone = StartedRun(task.run_alone(self.run), started.start, started.tokenizers)
            self._jobs[name] = _JOBS[task.kind](alone.run, alone, name)
        self.tasks = tuple(self._jobs)

    @property
    def tokenizers(self) -> Tokenizers:
        """The tokenizers of all tasks, available after `prepare`. Both sides are the same."""
        assert self._tokenizers is not None, "`prepare` learns the vocabulary"
        return self._tokenizers

    def check_held_out(self) -> Iterator[Finding]:
        """Yield the problems of the held-out examples of each task."""
        for job in self._jobs.values():
            yield from job.check_held_out()

    def prepare(self) -> None:
        """Hold out sets, learn one vocabulary from the texts of all tasks, if none is given, and prepare every task.

        A text that one task holds out is not trained on by any other task.
        """
        run, jobs = self.run, self._jobs.values()
        held_out = NO_KEYS
        for job in jobs:
            held_out = job.hold_out(held_out)
        for job in jobs:
            job.leave_out(held_out)
        examples = sum(job.size for job in jobs)
        if self._tokenizers is None:
            text = run.text.model_copy(update={"subword": run.text.subword.with_size(examples), "shared": True})
            texts = chain.from_iterable(job.training_texts() for job in jobs)
            self._tokenizers = train_tokenizers(text, iter(()), texts)
        tags = [*self._tokenizers.tags, *chain.from_iterable(job.symbols() for job in jobs)]
        self._tokenizers = self._tokenizers.with_tags(tuple(dict.fromkeys(tags)))
        model = run.model.resolve(examples)
        for job in jobs:
            job.share(model, self._tokenizers)
            job.prepare()
        self._members = [
            TaskMember(name, job, run.tasks[name].weight, methodcaller("of_task", name))
            for name, job in self._jobs.items()
        ]
        head = SeveralHeadsConfig(heads={name: job.run.model.head for name, job in self._jobs.items()})
        tasks: dict[str, Any] = {name: task.with_choices(self._jobs[name].run) for name, task in run.tasks.items()}
        train = run.train.model_copy(update={"head_rate": self._head_rate(head)})
        model = model.model_copy(update={"head": head})
        self.run = run.model_copy(update={"model": model, "tasks": tasks, "train": train})
        if train.validate_every is None:
            updates = -(-len(self.plan(0)) // self.batches_per_update)
            train = train.model_copy(update={"validate_every": validation_interval(updates, train.limited)})
            self.run = self.run.model_copy(update={"train": train})

    def _head_rate(self, head: SeveralHeadsConfig) -> float:
        """Return `train.head_rate`, by default the lowest `new_head_rate` of the new heads on a pre-trained encoder."""
        if self.run.train.head_rate is not None:
            return self.run.train.head_rate
        start = self.start
        if start is None:
            return 1.0
        new = [name for name, each in (head.heads or {}).items() if not has_same_head(start, each, name)]
        return min((self._jobs[name].new_head_rate for name in new), default=1.0)

    def store_inputs(self) -> None:
        """Store what every task holds out."""
        for job in self._jobs.values():
            job.store_inputs()

    @property
    def model_width(self) -> int:
        """The model width d."""
        return self.run.model.width

    def initialise(self, model: nn.Module) -> Mapping[str, float]:
        """Copy the parts of `train.start`. A head with other labels, for another task or of another name is new."""
        if self.start is not None:
            fill_encoder(self.start, model, self.run, self.tokenizers)
        return {}

    def outline(self, model: nn.Module) -> str:
        """Return one line with the preset, the numbers of parameters and vocabulary entries, and the tasks."""
        tasks = [
            f"{name}: {job.size or job.examples:,} examples, λ {self.run.tasks[name].weight:.3g}"
            for name, job in self._jobs.items()
        ]
        return (
            f"{self.run.model.preset or 'own'} · {count_parameters(model):,} parameters · vocabulary "
            f"{self.tokenizers.source.size:,} · {' · '.join(tasks)}"
        )

    def activation_bytes(self, model: Any, tokens: int, free: int) -> int:
        """Estimate the memory of a forward pass with all heads, which is an upper bound."""
        return activation_bytes(model, tokens, int(self.lengths.max()), free)

    def plan(self, epoch: int) -> BatchPlan:
        """Plan an epoch in which the batches of all tasks are mixed according to `mixing`."""
        run, jobs = self.run, list(self._jobs.values())
        own = [job.plan(epoch) for job in jobs]
        counts = run.mixing.counts([len(plan) for plan in own], epoch, run.train.max_epochs or 1)
        plans = [plans_for(job, epoch, count) for job, count in zip(jobs, counts, strict=True)]
        order = run.mixing.order(counts, run.train.seed, epoch)
        return BatchPlan(MixedBatches(plans, self._starts, order), (max(plan.padding_waste[0] for plan in own),))

    def padding(self, plan: BatchPlan) -> str:
        """Return a note on the fraction of padding."""
        return f"padding is at most {plan.padding_waste[0]:.1%} in each task"

    @property
    def batches_per_update(self) -> int:
        """Number of batches per update, over all tasks."""
        return int(self.run.train.accumulate) * (len(self._members) if self.run.mixing.together else 1)

    def flops_per_target_token(self) -> float:
        """Return the FLOPs of an epoch divided by its number of labels."""
        plan = [len(job.plan(0)) for job in self._jobs.values()]
        counts = self.run.mixing.counts(plan, 0, self.run.train.max_epochs or 1)
        passes = [count / batches for count, batches in zip(counts, plan, strict=True)]
        labels = [part * job.label_count for part, job in zip(passes, self._jobs.values(), strict=True)]
        flops = [count * job.flops_per_target_token() for count, job in zip(labels, self._jobs.values(), strict=True)]
        return sum(flops) / max(1.0, sum(labels))

    def trial(self, model: Any) -> TaskBatch:
        """Return a trial batch of the first task."""
        first = self._members[0]
        return TaskBatch(first.name, first.job.trial(first.part(model)))

    def validator(self, model: Any, device: torch.device) -> TasksValidator:
        """Return a validator for all tasks."""
        return TasksValidator(
            {
                each.name: TaskValidator(
                    each.job.validator(each.part(model), device),
                    each.job.run.train.metric,
                    each.weight,
                    isinstance(each.job, LabelledJob),
                )
                for each in self._members
            }
        )

    def measure(self, folder: Path, validation: Validation) -> None:
        """Add the scores and the numbers of labels of each task, and the settings of the training, to the card."""
        for job in self._jobs.values():
            job.deadline = self.deadline
            job.measure(folder, validation)
        weights = ", ".join(f"{name} {task.weight:g}" for name, task in self.run.tasks.items())
        facts = [("Weights of the tasks", weights), *training_facts(self.run, self.start, self.contents["valid"])]
        write_training_section(folder, facts)

    def measuring_seconds(self, limit: float, validation: float) -> float:
        """See `Job.measuring_seconds`; the validation sets are predicted once more."""
        return super().measuring_seconds(limit, validation) + validation

    def meta(self, step: int, validation: Validation | None, averaged_steps: tuple[int, ...]) -> Meta:
        """Return the model's metadata, with languages, licences, fingerprints and thresholds of all tasks."""
        meta = super().meta(step, validation, averaged_steps)
        data = [task.data for task in self.run.tasks.values()]
        languages, licences = (
            ", ".join(dict.fromkeys(value for value in values if value)) or None
            for values in ([each.language for each in data], [each.licence for each in data])
        )
        scores = () if validation is None else validation.scores
        thresholds = {name: each.value for name in self.tasks for each in scores if each.key == f"{name}_threshold"}
        recorded = [
            score.model_copy(update={"data": self._data_of(each.key)})
            for each, score in zip(scores, meta.scores, strict=True)
            if not each.key.endswith("_threshold")
        ]
        fingerprints: dict[str, str] = {}
        for job in self._jobs.values():
            fingerprints |= job.fingerprints
        return meta.model_copy(
            update={
                "source_language": languages,
                "licence": licences,
                "data": fingerprints,
                "thresholds": thresholds,
                "scores": tuple(recorded),
            }
        )

    def _data_of(self, key: str) -> str:
        """Return the names of the validation sets of a score: those of one task, or of all tasks."""
        owners = [name for name in self.tasks if key == name or key.startswith(f"{name}_")]
        named = [max(owners, key=len)] if owners else self.tasks
        return ", ".join(self.run.tasks[name].valid_names for name in named)
