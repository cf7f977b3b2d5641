"""From a config to the parts of a run: data, model, optimiser, store."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dragoman.base.device import choose_device
from dragoman.base.errors import ConfigError, in_files
from dragoman.base.files import atomic_write
from dragoman.base.log import info
from dragoman.base.memory import keep_large_tensors_on_heap
from dragoman.base.settings import dump_settings, load_settings
from dragoman.checkpoint.folder import LoadedModel, write_model_folder
from dragoman.checkpoint.meta import Meta, Score
from dragoman.checkpoint.store import CheckpointStore, TrainingSnapshot
from dragoman.data.prepare import Prepared, prepare
from dragoman.data.readers import check_readable, read_sides
from dragoman.models.build import Seq2Seq, build_model, count_parameters, resolve_preset
from dragoman.train.average import ParameterAverage
from dragoman.train.config import RunConfig
from dragoman.train.decisions import Decisions
from dragoman.train.engine import Engine, choose_precision
from dragoman.train.estimate import check_memory
from dragoman.train.lengths import check_lengths
from dragoman.train.objective import Objective
from dragoman.train.optimiser import build_optimiser
from dragoman.train.progress import Progress
from dragoman.train.r_drop import RDrop
from dragoman.train.schedule import default_schedule
from dragoman.train.sequence import SequenceObjective
from dragoman.train.start import copy_parameters, load_start
from dragoman.train.utilisation import Utilisation, flops_per_target_token, measure_rate
from dragoman.train.validate import Validation, Validator
from dragoman.translator import Translator

CONFIG_FILE = "config.yaml"
EMBEDDED = "embedded"
"""The journal's name for the shares of the vocabularies that began with vectors from a file."""

# A resumed run may be given new limits and rhythms; anything else would make it another run.
_MAY_CHANGE = frozenset({"max_steps", "max_epochs", "max_minutes", "patience", "log_every"})


@dataclass(frozen=True)
class Parts:
    """Everything that the loop works with.

    snapshot: where to go on from, or None; limits_changed: whether it was made under other limits.
    """

    config: RunConfig
    prepared: Prepared
    model: Seq2Seq
    engine: Engine
    average: ParameterAverage | None
    validator: Validator
    store: CheckpointStore
    decisions: Decisions
    snapshot: TrainingSnapshot | None
    limits_changed: bool

    def write_model(
        self,
        folder: Path,
        parameters: dict[str, Tensor],
        step: int,
        validation: Validation | None,
        averaged_steps: tuple[int, ...] = (),
    ) -> None:
        """Write parameters as a model folder of this run; validation: what they reached, if they were judged."""
        data = self.config.data
        meta = Meta(
            step=step,
            averaged_steps=averaged_steps,
            source_language=data.source_language,
            target_language=data.target_language,
            licence=data.licence,
            scores=() if validation is None else _scores(validation, str(data.valid)),
            data={str(data.train): self.prepared.dataset.fingerprint},
            embeddings=self.decisions.made(EMBEDDED, 0) or {},
        )
        write_model_folder(folder, parameters, dump_settings(self.config), self.prepared.tokenizers, meta)

    def utilisation(self) -> Utilisation:
        """What an update's products cost, and what this device gives, measured now."""
        tokenizers, engine = self.prepared.tokenizers, self.engine
        flops = flops_per_target_token(
            self.config.model,
            tokenizers.source.size,
            tokenizers.target.size,
            self.prepared.dataset.lengths,
            vectors=tokenizers.reads_vectors,
            passes=1 if self.config.train.objective.r_drop is None else 2,
        )
        return Utilisation(flops, measure_rate(engine.device, engine.precision))

    def prune(self, progress: Progress) -> None:
        """Remove checkpoints that neither averaging nor a later comparison needs."""
        config = self.config.train
        paths = self.store.checkpoints()
        keep = set(paths[-max(1, config.average.count) :])
        best = config.average.count if config.average.of == "best" else 1
        keep |= {self.store.checkpoint_folder(step) for step in progress.ranked()[: max(1, best)]}
        self.store.prune(keep)


@contextmanager
def assemble(config: RunConfig, resume: bool) -> Iterator[Parts]:
    """Build the parts of a run and hold the lock on its folder.

    Raises ConfigError when the folder holds another run, or this one and `resume` is False.
    """
    keep_large_tensors_on_heap()
    # All that is cheap to find wrong comes before anything is written or takes long.
    device = choose_device(config.train.device)
    check_readable(config.data.train)
    sources, targets = read_sides(config.data.valid)
    config, start = load_start(config)
    with CheckpointStore(config.out) as store:
        stored = _stored_config(config.out)
        if stored is not None and not resume:
            raise ConfigError(
                f"{config.out} holds a training run already: add --resume to go on with it, or choose another --out"
            )
        if stored is not None:
            _check_same_run(config, stored)
            config = _with_choices_of(config, stored)
            device = choose_device(config.train.device)
        elif start is None:
            chosen = config.model.preset != "auto" or "width" in config.model.model_fields_set
            config.model.embeddings.check(config.model.width if chosen else None)
        torch.set_num_threads(config.train.threads or torch.get_num_threads())
        text = config.text if start is None else start.tokenizers.with_dropout(config.text.subword.resampling)
        prepared = prepare(config.data.train, config.data.cleaning, text, config.out.parent / "prepared")
        if stored is None:
            config = _resolve(config, prepared, device)
        torch.manual_seed(config.train.seed)
        tokenizers = prepared.tokenizers
        sizes = tokenizers.source.size, tokenizers.target.size
        model = build_model(config.model, *sizes, tokenizers.reads_vectors).to(device)
        check_lengths(model.limits, config.data, prepared, sources, targets)
        snapshot = store.latest_training() if stored is not None else None
        if start is not None and snapshot is None:
            copy_parameters(start, model)
        decisions = Decisions(config.out / "training" / "decisions.jsonl")
        limits_changed = False
        if snapshot is not None:
            _check_same_data(config, prepared, snapshot)
            # The snapshot decides, not the stored config: a kill can come before the run has saved under new limits.
            limits_changed = snapshot.state.get("limits", config.train.limits) != config.train.limits
        embedded = decisions.made(EMBEDDED, 0)
        if limits_changed:
            decisions.forget()
        if snapshot is None and start is not None:
            embedded = start.meta.embeddings
        elif snapshot is None:
            config.model.embeddings.check(config.model.width)
            tables = model.encoder.embedding.tokens, model.decoder.embedding.tokens
            embedded = config.model.embeddings.fill(*tables, tokenizers)
        if embedded and embedded != decisions.made(EMBEDDED, 0):
            decisions.record(EMBEDDED, 0, embedded)
        store.discard_after(snapshot.step if snapshot is not None else 0)
        atomic_write(config.out / CONFIG_FILE, dump_settings(config))
        engine = Engine(
            model,
            _objective(config, prepared, device),
            build_optimiser(config.train.optimiser, model),
            decisions,
            device,
            choose_precision(config.train.precision, device),
            config.train.clip,
            config.train.seed,
        )
        check_memory(config, model, prepared.dataset.lengths, decisions, device)
        info(
            f"Model: {config.model.preset or 'own'} · {count_parameters(model):,} parameters · vocabulary "
            f"{prepared.tokenizers.target.size:,} · {len(prepared.dataset):,} pairs · {device} · "
            f"{config.train.precision}"
        )
        average = ParameterAverage(model, config.train.ema) if config.train.ema is not None else None
        loaded = LoadedModel(model, prepared.tokenizers, Meta(step=0), config.model_dump(mode="json"))
        translator = Translator(loaded, device, report_cut=False)
        with in_files(config.data.valid.source or config.data.valid.tsv):
            validator = Validator(sources, targets, prepared.tokenizers, translator, config.train.validation_beam)
        yield Parts(config, prepared, model, engine, average, validator, store, decisions, snapshot, limits_changed)


def _scores(validation: Validation, data: str) -> tuple[Score, ...]:
    bleu = validation.bleu
    return (
        Score(metric=bleu.name, value=bleu.value, signature=bleu.signature, data=data),
        Score(metric="perplexity", value=validation.perplexity, signature="per token", data=data),
    )


def _stored_config(folder: Path) -> RunConfig | None:
    path = folder / CONFIG_FILE
    if path.exists():
        return load_settings(path, [], RunConfig)
    if folder.exists() and (folder / "model.safetensors").exists():
        raise ConfigError(f"{folder} holds a model that no run here has trained: choose another --out")
    return None


def _resolve(config: RunConfig, prepared: Prepared, device: torch.device) -> RunConfig:
    """Fill in what was left to the data and the machine, so that the stored config says what was done."""
    precision = "bfloat16" if choose_precision(config.train.precision, device) == torch.bfloat16 else "float32"
    model = resolve_preset(config.model, len(prepared.dataset))
    train = config.train.model_copy(
        update={
            "precision": precision,
            "device": str(device),
            "threads": torch.get_num_threads(),
            "schedule": config.train.schedule or default_schedule(model.width),
        }
    )
    return config.model_copy(update={"train": train, "model": model})


def _with_choices_of(config: RunConfig, stored: RunConfig) -> RunConfig:
    """The stored run with the limits that were given now."""
    changes = {name: getattr(config.train, name) for name in _MAY_CHANGE}
    return stored.model_copy(update={"train": stored.train.model_copy(update=changes), "out": config.out})


def _check_same_data(config: RunConfig, prepared: Prepared, snapshot: TrainingSnapshot) -> None:
    """Raises ConfigError when the corpus holds other text than when the run began."""
    if snapshot.state.get("data", prepared.dataset.fingerprint) != prepared.dataset.fingerprint:
        raise ConfigError(
            f"cannot resume {config.out}: {config.data.train} has changed since the run began. Put the old files back, "
            "or train in another --out"
        )


def _check_same_run(config: RunConfig, stored: RunConfig) -> None:
    """Raises ConfigError naming the settings that make this another run."""
    given, before = config.model_dump(mode="json"), stored.model_dump(mode="json")
    given["model"] = _model_as_stored(config, stored)
    for name in ("precision", "device", "threads", "schedule"):
        if given["train"][name] in ("auto", None):
            given["train"][name] = before["train"][name]
    different = [
        key
        for key in sorted(set(_flat(given)) | set(_flat(before)))
        if _flat(given).get(key) != _flat(before).get(key)
        and key != "out"
        and not any(key == f"train.{name}" for name in _MAY_CHANGE)
    ]
    if different:
        shown = ", ".join(
            f"{key} (was {_flat(before).get(key)!r}, now {_flat(given).get(key)!r})" for key in different[:5]
        )
        raise ConfigError(
            f"cannot resume {config.out} with other settings: {shown}. Use the run's own, or another --out"
        )


def _model_as_stored(config: RunConfig, stored: RunConfig) -> dict[str, Any]:
    """The model section, with an automatic preset taken as the stored run chose it."""
    model = config.model
    if model.preset == "auto":
        model = type(model).model_validate({**model.model_dump(exclude_unset=True), "preset": stored.model.preset})
    return model.model_dump(mode="json")


def _flat(tree: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(tree, dict):
        return {path: tree}
    return {
        key: value for name, inner in tree.items() for key, value in _flat(inner, f"{path}.{name}".strip(".")).items()
    }


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
