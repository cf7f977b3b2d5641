"""From a config to the parts of a run: data, model, optimiser, store."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from dragoman.base.errors import ConfigError, ResourceError
from dragoman.base.files import atomic_write
from dragoman.base.log import info
from dragoman.base.memory import is_out_of_memory, keep_large_tensors_on_heap
from dragoman.base.settings import dump_settings, load_settings
from dragoman.checkpoint.folder import LoadedModel, write_model_folder
from dragoman.checkpoint.meta import Meta, Score
from dragoman.checkpoint.store import CheckpointStore, TrainingSnapshot
from dragoman.data.corpora.readers import check_readable
from dragoman.data.preparation.prepare import Prepared, prepare
from dragoman.models.build import Seq2Seq, build_model, count_parameters, resolve_preset
from dragoman.text.tokenizers import TextConfig, Tokenizers
from dragoman.train.average import ParameterAverage
from dragoman.train.config import RunConfig
from dragoman.train.decisions import Decisions
from dragoman.train.engine import Engine, choose_precision
from dragoman.train.estimate import check_memory
from dragoman.train.lengths import check_lengths
from dragoman.train.objectives.objective import Objective
from dragoman.train.objectives.r_drop import RDrop
from dragoman.train.objectives.sequence import SequenceObjective
from dragoman.train.objectives.teacher import ConstantRatioConfig
from dragoman.train.optimiser import build_optimiser
from dragoman.train.profiling.utilisation import Utilisation, flops_per_target_token, measure_rate
from dragoman.train.progress import Progress
from dragoman.train.ranks.interface import Ranks
from dragoman.train.ranks.launch import open_ranks, restarted
from dragoman.train.ranks.parallel import Alone, build_parallel
from dragoman.train.resumption import check_same_data, check_same_run, with_choices_of
from dragoman.train.schedule import default_schedule
from dragoman.train.start import copy_parameters, load_start
from dragoman.train.threads import build_threads
from dragoman.train.validation.held_out import check_tags, digest, read_held_out
from dragoman.train.validation.sets import ValidationSets
from dragoman.train.validation.validator import Validation
from dragoman.translator import Translator

CONFIG_FILE = "config.yaml"
EMBEDDED = "embedded"
"""The journal's name for the shares of the vocabularies that began with vectors from a file."""


@dataclass(frozen=True)
class Parts:
    """Everything that the loop works with.

    snapshot: where to go on from, or None; limits_changed: whether it was made under other limits; valid: fingerprint
    of the validation sets; before: what the model that the run starts from was trained on.
    """

    config: RunConfig
    prepared: Prepared
    model: Seq2Seq
    engine: Engine
    average: ParameterAverage | None
    validator: ValidationSets
    store: CheckpointStore
    decisions: Decisions
    snapshot: TrainingSnapshot | None
    limits_changed: bool
    ranks: Ranks
    parallel: Alone
    valid: str
    before: Meta

    def validate(self, step: int) -> Validation:
        """Judge the model that `parallel` shows. Raises ResourceError where translating does not fit the memory."""
        try:
            return self.validator.run(self.engine)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise ResourceError(
                f"not enough memory to validate at step {step}: leave the longest pairs out of "
                f"{self.config.data.validation}, or lower train.validation_beam"
            ) from None

    def write_model(
        self,
        folder: Path,
        parameters: dict[str, Tensor],
        step: int,
        validation: Validation | None,
        averaged_steps: tuple[int, ...] = (),
    ) -> None:
        """Write parameters as a model folder of this run; validation: what they reached, if they were judged.

        Only the first rank writes; the others wait until it has.
        """
        if not self.ranks.first:
            self.ranks.wait()
            return
        data = self.config.data
        meta = Meta(
            step=step,
            averaged_steps=averaged_steps,
            source_language=data.source_language,
            target_language=data.target_language,
            target_languages=tuple(dict.fromkeys([*self.before.target_languages, *data.languages])),
            tags=tuple(dict.fromkeys([*self.before.tags, *(tag for corpus in data.corpora for tag in corpus.tags)])),
            licence=data.licence,
            scores=() if validation is None else _scores(validation, data.validation),
            data=dict(zip(map(str, data.corpora), self.prepared.fingerprints, strict=True)),
            embeddings=self.decisions.made(EMBEDDED, 0) or {},
        )
        write_model_folder(folder, parameters, dump_settings(self.config), self.prepared.tokenizers, meta)
        self.ranks.wait()

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
        return Utilisation(flops, measure_rate(engine.device, engine.precision), self.ranks.size)

    def prune(self, progress: Progress) -> None:
        """Remove checkpoints that neither averaging nor a later comparison needs."""
        if not self.ranks.first:
            return
        config = self.config.train
        paths = self.store.checkpoints()
        keep = set(paths[-max(1, config.average.count) :])
        best = config.average.count if config.average.of == "best" else 1
        keep |= {self.store.checkpoint_folder(step) for step in progress.ranked()[: max(1, best)]}
        self.store.prune(keep)


@contextmanager
def assemble(config: RunConfig, resume: bool) -> Iterator[Parts]:
    """Build the parts of a run and hold the lock on its folder; join the other processes where there are any.

    A process that torchrun has restarted resumes. Raises ConfigError when the folder holds another run, or this one and
    `resume` is False.
    """
    keep_large_tensors_on_heap()
    resume = resume or restarted()
    stored = _stored_config(config.out) if resume else None
    with open_ranks(stored.train.device if stored is not None else config.train.device) as ranks, ExitStack() as stack:
        # All that is cheap to find wrong comes before anything is written or takes long. It is found by the first rank.
        with ranks.in_turn():
            check_readable(*config.data.corpora)
            held_out = read_held_out(config)
            config, start = load_start(config)
            check_tags(held_out, config, start)
            store = stack.enter_context(CheckpointStore(config.out, owned=ranks.first))
            stored = _stored_config(config.out)
            if stored is not None and not resume:
                raise ConfigError(
                    f"{config.out} holds a training run already: add --resume to go on with it, or choose another --out"
                )
            if stored is not None:
                check_same_run(config, stored)
                config = with_choices_of(config, stored)
            elif start is None:
                chosen = config.model.preset != "auto" or "width" in config.model.model_fields_set
                config.model.embeddings.check(config.model.width if chosen else None)
            torch.set_num_threads(config.train.threads or torch.get_num_threads())
            text = config.text if start is None else start.tokenizers.with_dropout(config.text.subword.resampling)
            prepared = _prepare(config, text)
            _check_enough(ranks, prepared)
            if stored is None:
                config = _resolve(config, prepared, ranks)
            torch.manual_seed(config.train.seed)
            tokenizers = prepared.tokenizers
            sizes = tokenizers.source.size, tokenizers.target.size
            model = build_model(config.model, *sizes, tokenizers.reads_vectors).to(ranks.device)
            check_lengths(model.limits, config.data, prepared, held_out)
            snapshot = store.latest_training() if stored is not None else None
            if start is not None and snapshot is None:
                copy_parameters(start, model)
            decisions = Decisions(config.out / "training" / "decisions.jsonl", owned=ranks.first)
            limits_changed = False
            if snapshot is not None:
                check_same_data(config, prepared, held_out, snapshot)
                # The snapshot decides, not the stored config: a kill can come before new limits are saved.
                limits_changed = snapshot.state.get("limits", config.train.limits) != config.train.limits
            embedded = decisions.made(EMBEDDED, 0)
            if snapshot is None and start is not None:
                embedded = start.meta.embeddings
            elif snapshot is None:
                config.model.embeddings.check(config.model.width)
                tables = model.encoder.embedding.tokens, model.decoder.embedding.tokens
                embedded = config.model.embeddings.fill(*tables, tokenizers)
        config = _as_on_first(config, ranks)
        _check_shared(config.out, ranks, None if snapshot is None else snapshot.step)
        if limits_changed:
            decisions.forget()
        if embedded and embedded != decisions.made(EMBEDDED, 0):
            decisions.record(EMBEDDED, 0, embedded)
        if ranks.first:
            store.discard_after(snapshot.step if snapshot is not None else 0)
            atomic_write(config.out / CONFIG_FILE, dump_settings(config))
        objective = _objective(config, prepared, ranks.device)
        threads = None
        if not ranks.several:
            tokens = config.data.batch.tokens
            threads = build_threads(model, objective, ranks.device, torch.get_num_threads(), tokens)
        if threads is not None:
            stack.callback(threads.close)
        count = 1 if threads is None else threads.count
        check_memory(config, model, prepared.dataset.lengths, decisions, ranks, count)
        info(
            f"Model: {config.model.preset or 'own'} · {count_parameters(model):,} parameters · vocabulary "
            f"{prepared.tokenizers.target.size:,} · {len(prepared.dataset):,} pairs · {_places(config, ranks)} · "
            f"{config.train.precision}"
        )
        always = config.train.teacher_forcing == ConstantRatioConfig()
        parallel = build_parallel(config.train, model, objective, ranks, 1.0 if always else 0.0)
        engine = Engine(
            model,
            objective,
            build_optimiser(config.train.optimiser, model),
            decisions,
            ranks.device,
            choose_precision(config.train.precision, ranks.device),
            config.train.clip,
            config.train.seed,
            ranks,
            parallel,
            threads,
        )
        average = ParameterAverage(model, config.train.ema) if config.train.ema is not None else None
        loaded = LoadedModel(parallel.model, prepared.tokenizers, Meta(step=0), config.model_dump(mode="json"))
        translator = Translator(loaded, ranks.device, report_cut=False)
        validator = ValidationSets(held_out, prepared.tokenizers, translator, config.train.validation_beam)
        valid = digest(held_out)
        made = config, prepared, model, engine, average, validator, store, decisions, snapshot, limits_changed
        yield Parts(*made, ranks, parallel, valid, Meta(step=0) if start is None else start.meta)


def _prepare(config: RunConfig, text: TextConfig | Tokenizers) -> Prepared:
    data, folder = config.data, config.out.parent / "prepared"
    return prepare(data.corpora, data.cleaning, text, folder, data.temperature, data.vocabulary_sample)


def _scores(validation: Validation, data: str) -> tuple[Score, ...]:
    bleu = validation.bleu
    own = (
        Score(metric=bleu.name, value=bleu.value, signature=bleu.signature, data=data),
        Score(metric="perplexity", value=validation.perplexity, signature="per token", data=data),
    )
    return own + tuple(score for name, one in validation.sets.items() for score in _scores(one, name))


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
            "schedule": config.train.schedule or default_schedule(model.width),
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
