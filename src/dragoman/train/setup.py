"""From a config to the parts of a run: data, model, optimiser, store."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from dragoman.base.allocator import keep_large_tensors_on_heap
from dragoman.base.errors import ConfigError
from dragoman.base.files import atomic_write
from dragoman.base.log import info
from dragoman.base.settings import dump_settings, load_settings
from dragoman.checkpoint.folder import LoadedModel
from dragoman.checkpoint.meta import Meta
from dragoman.checkpoint.store import CheckpointStore, TrainingSnapshot
from dragoman.data.corpora.readers import check_readable
from dragoman.data.preparation.prepare import Prepared, prepare
from dragoman.models.build import Seq2Seq, build_model, count_parameters, resolve_preset
from dragoman.train.average import ParameterAverage
from dragoman.train.compilation import check_compilable, compile_layers
from dragoman.train.config import RunConfig
from dragoman.train.decisions import Decisions
from dragoman.train.engine import Engine
from dragoman.train.estimate import check_memory
from dragoman.train.lengths import check_lengths
from dragoman.train.objectives.objective import Objective
from dragoman.train.objectives.r_drop import RDrop
from dragoman.train.objectives.sequence import SequenceObjective
from dragoman.train.objectives.teacher import ConstantRatioConfig
from dragoman.train.parts import EMBEDDED, Parts
from dragoman.train.precision import choose_precision, warn_of_slow_products
from dragoman.train.ranks.interface import Ranks
from dragoman.train.ranks.launch import open_ranks, restarted
from dragoman.train.ranks.parallel import build_parallel
from dragoman.train.resumption import check_same_data, check_same_run, warn_of_rounding, with_choices_of
from dragoman.train.schedule import default_schedule
from dragoman.train.start import copy_parameters, load_start
from dragoman.train.threads import build_threads
from dragoman.train.validation.held_out import HeldOut, check_tags, digest, read_held_out
from dragoman.train.validation.sets import ValidationSets
from dragoman.translator import Translator

CONFIG_FILE = "config.yaml"


@contextmanager
def assemble(config: RunConfig, resume: bool) -> Iterator[Parts]:
    """Build the parts of a run and hold the lock on its folder; join the other processes where there are any.

    A process that torchrun has restarted resumes. Raises ConfigError when the folder holds another run, or this one and
    `resume` is False.
    """
    keep_large_tensors_on_heap()
    resume = resume or restarted()
    stored = _stored_config(config.out) if resume else None
    device = config.train.device
    if stored is not None and device == "auto":
        device = stored.train.device
    with open_ranks(device) as ranks, ExitStack() as stack:
        with ranks.in_turn():
            ground = _survey(config, resume, ranks, stack)
        ground = replace(ground, config=_as_on_first(ground.config, ranks))
        _take(ground, ranks)
        engine = _build_engine(ground, ranks, stack)
        yield _complete(ground, engine, ranks)


@dataclass(frozen=True)
class _Ground:
    """What a rank finds before anything of the run is written.

    start: the model that the run starts from, or None; embedded: the shares of the vocabularies that began with vectors
    from a file; the others as in `Parts`.
    """

    config: RunConfig
    held_out: tuple[HeldOut, ...]
    start: LoadedModel | None
    store: CheckpointStore
    prepared: Prepared
    model: Seq2Seq
    decisions: Decisions
    snapshot: TrainingSnapshot | None
    limits_changed: bool
    embedded: dict[str, float] | None


def _survey(config: RunConfig, resume: bool, ranks: Ranks, stack: ExitStack) -> _Ground:
    """Check all that is cheap to find wrong before anything is written or takes long; then prepare data and model."""
    check_readable(*config.data.corpora)
    held_out = read_held_out(config)
    config, start = load_start(config)
    check_tags(held_out, config, start)
    check_compilable(config)
    store = stack.enter_context(CheckpointStore(config.out, owned=ranks.first))
    stored = _stored_config(config.out)
    if stored is not None and not resume:
        raise ConfigError(
            f"{config.out} holds a training run already: add --resume to go on with it, or choose another --out"
        )
    if stored is not None:
        check_same_run(config, stored)
        warn_of_rounding(config, stored)
        config = with_choices_of(config, stored)
    elif start is None:
        chosen = config.model.preset != "auto" or "width" in config.model.model_fields_set
        config.model.embeddings.check(config.model.width if chosen else None)
    torch.set_num_threads(config.train.threads or torch.get_num_threads())
    if ranks.first:
        warn_of_slow_products(config.train.precision, ranks.device, stored is not None)
    prepared = _prepare(config, start)
    _check_enough(ranks, prepared)
    if stored is None:
        config = _resolve(config, prepared, ranks)
    torch.manual_seed(config.train.seed)
    tokenizers = prepared.tokenizers
    sizes = tokenizers.source.size, tokenizers.target.size
    model = build_model(config.model, *sizes, tokenizers.reads_vectors).to(ranks.device)
    check_lengths(model.limits, config.data, prepared, held_out)
    decisions = Decisions(config.out / "training" / "decisions.jsonl", owned=ranks.first)
    snapshot = store.latest_training() if stored is not None else None
    limits_changed, embedded = False, decisions.made(EMBEDDED, 0)
    if snapshot is not None:
        check_same_data(config, prepared, held_out, snapshot)
        # The snapshot decides, not the stored config: a kill can come before new limits are saved.
        limits_changed = snapshot.state.get("limits", config.train.limits) != config.train.limits
    elif start is not None:
        copy_parameters(start, model)
        embedded = start.meta.embeddings
    else:
        config.model.embeddings.check(config.model.width)
        tables = model.encoder.embedding.tokens, model.decoder.embedding.tokens
        embedded = config.model.embeddings.fill(*tables, tokenizers)
    return _Ground(config, held_out, start, store, prepared, model, decisions, snapshot, limits_changed, embedded)


def _take(ground: _Ground, ranks: Ranks) -> None:
    """Make the folder this run's: what is later than its snapshot goes, and its settings are written."""
    step, embedded = 0 if ground.snapshot is None else ground.snapshot.step, ground.embedded
    _check_shared(ground.config.out, ranks, None if ground.snapshot is None else step)
    if ground.limits_changed:
        ground.decisions.forget()
    if embedded and embedded != ground.decisions.made(EMBEDDED, 0):
        ground.decisions.record(EMBEDDED, 0, embedded)
    if ranks.first:
        ground.store.discard_after(step)
        atomic_write(ground.config.out / CONFIG_FILE, dump_settings(ground.config))


def _build_engine(ground: _Ground, ranks: Ranks, stack: ExitStack) -> Engine:
    """What makes an update, with its threads; raises ResourceError where an update will not fit the memory."""
    config, model, prepared = ground.config, ground.model, ground.prepared
    objective = _objective(config, prepared, ranks.device)
    threads = None
    if not ranks.several and not config.train.compile:
        threads = build_threads(model, objective, ranks.device, torch.get_num_threads(), config.data.batch.tokens)
    if threads is not None:
        stack.callback(threads.close)
    count = 1 if threads is None else threads.count
    check_memory(config, model, prepared.dataset.lengths, ground.decisions, ranks, count)
    info(
        f"Model: {config.model.preset or 'own'} · {count_parameters(model):,} parameters · vocabulary "
        f"{prepared.tokenizers.target.size:,} · {len(prepared.dataset):,} pairs · {_places(config, ranks)} · "
        f"{config.train.precision}"
    )
    always = config.train.teacher_forcing == ConstantRatioConfig()
    # Before the optimiser: FSDP replaces the parameters.
    parallel = build_parallel(config.train, model, objective, ranks, 1.0 if always else 0.0)
    if config.train.compile:
        compile_layers(model, ranks.device)
    precision = choose_precision(config.train.precision, ranks.device)
    return Engine(
        model,
        objective,
        config.train.optimiser.build(model, precision, threads),
        ground.decisions,
        ranks.device,
        precision,
        config.train.clip,
        config.train.seed,
        ranks,
        parallel,
        threads,
    )


def _complete(ground: _Ground, engine: Engine, ranks: Ranks) -> Parts:
    config, tokenizers = ground.config, ground.prepared.tokenizers
    loaded = LoadedModel(engine.parallel.model, tokenizers, Meta(step=0), config.model_dump(mode="json"))
    translator = Translator(loaded, ranks.device, report_cut=False)
    return Parts(
        config=config,
        prepared=ground.prepared,
        model=ground.model,
        engine=engine,
        average=ParameterAverage(ground.model, config.train.ema) if config.train.ema is not None else None,
        validator=ValidationSets(ground.held_out, tokenizers, translator, config.train.validation_beam),
        store=ground.store,
        decisions=ground.decisions,
        snapshot=ground.snapshot,
        limits_changed=ground.limits_changed,
        ranks=ranks,
        parallel=engine.parallel,
        valid=digest(ground.held_out),
        before=Meta(step=0) if ground.start is None else ground.start.meta,
    )


def _prepare(config: RunConfig, start: LoadedModel | None) -> Prepared:
    data, folder = config.data, config.out.parent / "prepared"
    text = config.text if start is None else start.tokenizers.with_dropout(config.text.subword.resampling)
    return prepare(data.corpora, data.cleaning, text, folder, data.temperature, data.vocabulary_sample)


def _stored_config(folder: Path) -> RunConfig | None:
    path = folder / CONFIG_FILE
    if path.exists():
        return load_settings(path, [], RunConfig)
    if folder.exists() and (folder / "model.safetensors").exists():
        raise ConfigError(f"{folder} holds a model that no run here has trained: choose another --out")
    return None


def _resolve(config: RunConfig, prepared: Prepared, ranks: Ranks) -> RunConfig:
    """Fill in what was left to the data and the machine, so that the stored config says what was done."""
    device = ranks.device
    precision = "bfloat16" if choose_precision(config.train.precision, device) == torch.bfloat16 else "float32"
    model = resolve_preset(config.model, len(prepared.dataset))
    train = config.train.model_copy(
        update={
            "precision": precision,
            "device": device.type if ranks.several else str(device),
            "threads": torch.get_num_threads(),
            "schedule": config.train.schedule or default_schedule(model.width, config.train.limited),
        }
    )
    return config.model_copy(update={"train": train, "model": model})


def _as_on_first(config: RunConfig, ranks: Ranks) -> RunConfig:
    """With what was measured on the first rank, which may be another machine."""
    if not ranks.several:
        return config
    precision, threads = ranks.tell((config.train.precision, config.train.threads))
    torch.set_num_threads(threads or torch.get_num_threads())
    train = config.train.model_copy(update={"precision": precision, "threads": threads})
    return config.model_copy(update={"train": train})


def _check_enough(ranks: Ranks, prepared: Prepared) -> None:
    if len(prepared.dataset) < ranks.size:
        raise ConfigError(
            f"{ranks.size} processes have only {len(prepared.dataset)} sentence pairs to share: start fewer"
        )


def _check_shared(folder: Path, ranks: Ranks, step: int | None) -> None:
    """Every rank must see the same run folder. Raises ConfigError."""
    seen = ranks.gather([(folder / "checkpoints").is_dir(), step, ranks.device.type])
    if any(each[:2] != seen[0][:2] for each in seen):
        raise ConfigError(
            f"the processes do not see the same files in {folder}: all machines must share the storage of --out"
        )
    if any(each != seen[0] for each in seen):
        raise ConfigError("some processes have a GPU and some have none: set train.device=cpu, or leave out machines")


def _places(config: RunConfig, ranks: Ranks) -> str:
    return (
        f"{ranks.size} processes ({config.train.parallel}) on {ranks.device.type}"
        if ranks.several
        else str(ranks.device)
    )


def _objective(config: RunConfig, prepared: Prepared, device: torch.device) -> Objective | RDrop:
    objective, prior = config.train.objective, _prior(config, prepared, device)
    if objective.reward is not None:
        return SequenceObjective(objective, objective.reward, prepared.tokenizers.target, prior)
    plain = Objective(objective, prior)
    return plain if objective.r_drop is None else RDrop(plain, objective.r_drop)


def _prior(config: RunConfig, prepared: Prepared, device: torch.device) -> Tensor | None:
    """How often each target entry occurs in the training data, end of sentence counted."""
    if config.train.objective.prior == "uniform":
        return None
    counts = prepared.dataset.target_counts(prepared.tokenizers.target.size).astype(np.float64)
    return torch.from_numpy(counts / counts.sum()).float().to(device)
