"""Building of a run's session from its config: job, model, optimiser and checkpoint store."""

from collections.abc import Iterator, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch
from torch import nn

from dragoman.base.errors import ConfigError
from dragoman.base.files import atomic_write
from dragoman.base.interruption import interruption_message
from dragoman.base.log import info
from dragoman.base.machine.startup import keep_large_tensors_on_heap
from dragoman.base.settings.load import dump_settings, load_settings
from dragoman.checkpoint.folder import CONFIG
from dragoman.checkpoint.store import CheckpointStore, TrainingSnapshot
from dragoman.data.held_out.check import report
from dragoman.training.machine.compilation import compile_layers
from dragoman.training.machine.journal import Journal
from dragoman.training.machine.precision import PRECISIONS, choose_precision, warn_of_slow_products
from dragoman.training.machine.threads import build_threads
from dragoman.training.optimisers.average import ParameterAverage
from dragoman.training.optimisers.layers import GradualUnfreezing, freeze_parts, rate_factors, set_rate_factors
from dragoman.training.ranks.group import open_ranks, restarted
from dragoman.training.ranks.parallel import ParallelSettings, build_parallel
from dragoman.training.ranks.ranks import Ranks, Runtime
from dragoman.training.ranks.shardable import shardable_modules
from dragoman.training.run.folder import check_free, contains_run, start_message
from dragoman.training.run.memory import check_memory
from dragoman.training.run.resumption import apply_changes, check_same_contents, check_same_run, warn_of_rounding
from dragoman.training.run.session import Session
from dragoman.training.task import Batch, Job, OpenJob, RunConfig
from dragoman.training.updates.captured import captured_passes
from dragoman.training.updates.copies import copies_on_cpu
from dragoman.training.updates.engine import Engine

NOTES = "embedded"
"""Journal key of the notes made at the start of a run."""

R = TypeVar("R", bound=RunConfig)


@contextmanager
def assemble(config: RunConfig, open_job: OpenJob, resume: bool) -> Iterator[Session]:
    """Build the session of a run, lock the run's folder within this context, and join the other processes, if any.

    A process that torchrun has restarted resumes the run. Raises ConfigError if the folder contains another run, or if
    it contains this run and `resume` is False.
    """
    keep_large_tensors_on_heap()
    resume = resume or restarted()
    stored = _stored_config(config.out, type(config)) if resume else None
    device = config.train.device
    if stored is not None and device == "auto":
        device = stored.train.device
    with open_ranks(device) as ranks, ExitStack() as stack:
        with ranks.in_turn():
            if ranks.is_main:
                check_free(config.out)
            prepared = _inspect_inputs(open_job(config), resume, ranks, stack)
        stack.callback(prepared.job.close)
        prepared.job.run = _share_measured_settings(prepared.job.run, ranks)
        _claim_folder(prepared, ranks)
        resumed = prepared.snapshot is not None
        with interruption_message(start_message(config.out, ranks.distributed, resumed)):
            if ranks.is_main:
                prepared.job.begin()
            ranks.wait()
            session = _build_session(prepared, ranks, stack, config.train.model_fields_set)
        yield session


@dataclass(frozen=True)
class PreparedRun:
    """The objects that a rank prepares before anything is written. The fields are those of `Session`."""

    job: Job
    store: CheckpointStore
    model: nn.Module
    journal: Journal
    snapshot: TrainingSnapshot | None
    limits_changed: bool


def _inspect_inputs(job: Job, resume: bool, ranks: Ranks, stack: ExitStack) -> PreparedRun:
    """Prepare data and model. All cheap checks are made before slow work begins and before anything is written."""
    config = job.run
    store = stack.enter_context(CheckpointStore(config.out, owned=ranks.is_main))
    stored = _stored_config(config.out, type(config))
    if stored is not None and not resume:
        raise ConfigError(
            f"{config.out} already contains a training run: add --resume to continue it, or choose another --out"
        )
    if stored is not None:
        check_same_run(config, stored)
        warn_of_rounding(config, stored)
        job.run = apply_changes(config, stored)
    else:
        job.check_initial_values()
        if ranks.is_main:
            report(job.check_held_out())
    torch.set_num_threads(job.run.train.threads or torch.get_num_threads())
    if ranks.is_main:
        warn_of_slow_products(job.run.train.precision, ranks.device, stored is not None)
    job.prepare()
    if job.examples < ranks.size:
        raise ConfigError(f"{ranks.size} processes share only {job.examples} examples: start fewer processes")
    if stored is None:
        job.run = _choose_machine_settings(job, ranks)
        on_gpu = ranks.device.type == "cuda"
        job.choose_batches(packed=on_gpu or job.run.train.precision == "bfloat16", few_shapes=on_gpu)
    torch.manual_seed(job.run.train.seed)
    model = job.build().to(ranks.device)
    freeze_parts(model, job.run.train.freeze)
    if job.run.train.unfreeze_every is not None and ranks.distributed:
        raise ConfigError("train.unfreeze_every supports a single process: remove it, or start one process")
    journal = Journal(config.out / "training" / "decisions.jsonl", owned=ranks.is_main)
    snapshot = store.latest_training() if stored is not None else None
    limits_changed, job.notes = False, journal.get(NOTES, 0) or {}
    if snapshot is not None:
        check_same_contents(job, snapshot)
        # The stored config cannot be used: the process may have been killed before it saved the new limits.
        limits_changed = snapshot.state.get("limits", job.run.train.limits) != job.run.train.limits
    else:
        job.notes = job.initialise(model)
    return PreparedRun(job, store, model, journal, snapshot, limits_changed)


def _claim_folder(prepared: PreparedRun, ranks: Ranks) -> None:
    """Remove everything in the folder that is newer than the snapshot, and write the settings."""
    job, journal, step = prepared.job, prepared.journal, 0 if prepared.snapshot is None else prepared.snapshot.step
    _check_shared(job.run.out, ranks, None if prepared.snapshot is None else step)
    if prepared.limits_changed:
        journal.clear()
    if job.notes and job.notes != journal.get(NOTES, 0):
        journal.record(NOTES, 0, job.notes)
    if ranks.is_main:
        prepared.store.discard_after(step)
        atomic_write(job.run.out / CONFIG, dump_settings(job.run))
        job.store_inputs()


def _build_session(prepared: PreparedRun, ranks: Ranks, stack: ExitStack, chosen: Set[str]) -> Session:
    """Build the engine and the validator. chosen: as in `Session`.

    Raises ResourceError if an update does not fit in memory.
    """
    job, model, config = prepared.job, prepared.model, prepared.job.run.train
    objective = job.objective(ranks.device)

    def trial() -> Batch:
        batch: Batch = job.trial(model).to(ranks.device)
        return batch

    threads = None
    if not ranks.distributed and not config.compile:
        threads = build_threads(model, objective.divisible, ranks.device, torch.get_num_threads(), job.batch_tokens)
    if threads is not None:
        stack.callback(threads.close)
    check_memory(job, model, prepared.journal, ranks, 1 if threads is None else threads.count)
    info(f"Model: {job.outline(model)} · {_describe_devices(ranks, config.parallel)} · {config.precision}")
    # This must precede building the optimiser, because FSDP replaces the parameters.
    parallel = build_parallel(
        ParallelSettings(config.parallel, job.batches_per_update, lambda: shardable_modules(model, objective, trial())),
        ranks,
        model,
        objective,
    )
    if config.compile:
        compile_layers(model, ranks.device)
    precision = choose_precision(config.precision, ranks.device)
    optimiser = config.optimiser.build(model, precision, threads)
    set_rate_factors(optimiser, rate_factors(model, config.layer_decay, config.head_rate or 1.0))
    unfreeze_every = config.unfreeze_every
    runtime = Runtime(ranks.device, precision, ranks)
    captured = None
    if config.cuda_graphs:
        captured = captured_passes(parallel.model, objective, runtime, job.has_few_shapes)
    return Session(
        job=job,
        model=model,
        engine=Engine(
            config,
            parallel,
            optimiser,
            runtime,
            journal=prepared.journal,
            threads=threads,
            captured=captured,
            copies=None if config.compile else copies_on_cpu(parallel.model, objective, runtime),
        ),
        unfreezing=None if unfreeze_every is None else GradualUnfreezing(model, unfreeze_every),
        average=ParameterAverage(model, config.ema) if config.ema is not None else None,
        validator=job.validator(parallel.model, ranks.device),
        store=prepared.store,
        snapshot=prepared.snapshot,
        limits_changed=prepared.limits_changed,
        chosen=frozenset(chosen),
    )


def _stored_config(folder: Path, kind: type[R]) -> R | None:
    return load_settings(folder / CONFIG, [], kind) if contains_run(folder) else None


def _choose_machine_settings(job: Job, ranks: Ranks) -> RunConfig:
    """Return the settings of the run with automatic values replaced, so that the stored config contains the choices."""
    device, config = ranks.device, job.run.train
    chosen = choose_precision(config.precision, device)
    precision = next(name for name, dtype in PRECISIONS.items() if dtype == chosen)
    train = config.resolve(job.model_width).model_copy(
        update={
            "precision": precision,
            "device": device.type if ranks.distributed else str(device),
            "threads": torch.get_num_threads(),
        }
    )
    return job.run.model_copy(update={"train": train})  # type: ignore[no-any-return]


def _share_measured_settings(config: R, ranks: Ranks) -> R:
    """Return the config with the measured settings of the first rank, which may run on another machine."""
    if not ranks.distributed:
        return config
    precision, threads = ranks.broadcast((config.train.precision, config.train.threads))
    torch.set_num_threads(threads or torch.get_num_threads())
    train = config.train.model_copy(update={"precision": precision, "threads": threads})
    return config.model_copy(update={"train": train})


def _check_shared(folder: Path, ranks: Ranks, step: int | None) -> None:
    """Raise ConfigError if the ranks do not share the run folder, or if they have different kinds of devices."""
    states = ranks.gather([(folder / "checkpoints").is_dir(), step, ranks.device.type])
    if any(state[:2] != states[0][:2] for state in states):
        raise ConfigError(
            f"the processes find different files in {folder}: all machines must share the storage of --out"
        )
    if any(state != states[0] for state in states):
        raise ConfigError("some processes have a GPU and others do not: set train.device=cpu, or use fewer machines")


def _describe_devices(ranks: Ranks, parallel: str) -> str:
    return f"{ranks.size} processes ({parallel}) on {ranks.device.type}" if ranks.distributed else str(ranks.device)
