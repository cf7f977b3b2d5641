"""`describe` reports the parts, size and cost of a model, before or after training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from dragoman.base.errors import ConfigError
from dragoman.base.files import atomic_folder, check_new_folder
from dragoman.base.settings.load import (
    COMMAND_LINE,
    PYTHON,
    Override,
    Overrides,
    Source,
    all_overrides,
    load_settings,
    read_document,
)
from dragoman.checkpoint.card.card import task_kind
from dragoman.checkpoint.folder import parse_folder_model, read_config, read_meta
from dragoman.checkpoint.run_state import warn_of_unfinished_run
from dragoman.figures.figure import Figure
from dragoman.figures.masks import applied_masks
from dragoman.models.description.describe import Description, describe_model, small_sizes
from dragoman.models.description.description_text import as_json, numbers_text, parts_table
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.models.kinds.registry import describe_kind, kind_of
from dragoman.models.settings import ModelSettings, PresetSettings
from dragoman.tasks.corpora.job import packing_obstacle
from dragoman.tasks.registry import TaskKind
from dragoman.tasks.start.settings import load_start
from dragoman.tasks.train import task_of
from dragoman.text.tokenizers import TextConfig, Tokenizers, VocabularySizes
from dragoman.training.config import LoopConfig
from dragoman.training.optimisers.schedule_curves import schedule_curves

DEFAULT_VOCABULARY, DEFAULT_PAIRS = 37_000, 4_500_000
"""Vocabulary entries and sentence pairs of WMT 2014 English–German (Vaswani et al. 2017, section 5.1)."""

_DRAWN_STEPS = 10_000
"""Number of updates for which a learning rate is drawn if the run has no limit, or a limit in other units."""

DEFAULT_TOKENS = 1_000_000
"""Corpus size in tokens that determines the automatic preset of a language model if the actual size is unknown."""


@dataclass(frozen=True)
class ModelDescription:
    """A model and its description.

    config: the model's settings. source, target: vocabulary sizes; if the source consists of vectors, `source` is their
    width. notes: the model's origin, and assumptions. whole: parts, parameters, FLOPs, memory and limits.
    """

    config: ModelSettings
    source: int
    target: int
    notes: tuple[str, ...]
    whole: Description

    def text(self, width: int = 100) -> str:
        """Format the description as text, at most `width` characters wide if possible."""
        return "\n".join(self.notes) + f"\n\n{parts_table(self.whole, width)}\n\n{numbers_text(self.whole)}"

    def __str__(self) -> str:
        return self.text()

    def as_json(self) -> dict[str, Any]:
        """Return the description as JSON types."""
        settings = {"model": self.config.model_dump(mode="json"), "source": self.source, "target": self.target}
        return {**settings, "notes": list(self.notes), **as_json(self.whole)}


def describe(
    model: Source = None,
    overrides: Overrides = (),
    *,
    vocabulary: int | Sequence[int] = (),
    pairs: int | None = None,
    length: int = 32,
    depth: int = 3,
    draw: str | Path | None = None,
) -> ModelDescription:
    """Describe a model: parts with shapes and parameters, FLOPs per token, memory, and the maximum text length.

    model: a model folder, a recipe, or the keys of a recipe's `model` section. The latter two are YAML files or nested
    settings. overrides: values by dotted key, such as `{"model.preset": "base"}`. vocabulary: size of a shared
    vocabulary, or the sizes of the source and the target vocabulary (default: the recipe's, or WMT 2014's). pairs:
    corpus size that determines the preset if it is `auto`. length: number of source tokens and of target tokens for
    which FLOPs and memory are computed. depth: levels of nested parts. draw: a new folder for figures: the masks
    that the model's attention applies to texts of this length, and the learning rate of a recipe. Raises ConfigError
    for invalid settings, and for any settings if the model is trained; ModelError if a folder is not a model folder.

    >>> from dragoman import describe
    >>> description = describe({"preset": "tiny"}, vocabulary=4000)
    >>> print(f"{description.whole.parameters:,} parameters")
    3,345,152 parameters
    """
    if draw is not None:
        check_new_folder(Path(draw))
    sizes = (vocabulary,) if isinstance(vocabulary, int) else tuple(vocabulary)
    if isinstance(model, str | Path) and Path(model).is_dir():
        if overrides or sizes or pairs:
            raise ConfigError(
                f"{model} is a trained model, so its settings cannot be changed: remove the other arguments"
            )
        subject = _load_trained(Path(model))
    else:
        subject = _configure_untrained(task_of(model, overrides), model, overrides, sizes, pairs)
    description = subject.describe(length, depth)
    if draw is not None:
        with atomic_folder(Path(draw)) as folder:
            for name, figure in subject.figures(length).items():
                figure.save(folder, name)
    return description


@dataclass(frozen=True)
class _Subject:
    """The model to describe, with its vocabulary sizes.

    notes: the origins of the model and of the sizes. training: the training of a recipe, or None.
    """

    config: ModelSettings
    sizes: VocabularySizes
    notes: list[str]
    training: LoopConfig | None = None

    def describe(self, length: int, depth: int) -> ModelDescription:
        """Describe the model for texts of `length` tokens, with parts down to `depth`."""
        whole = describe_model(self.config, self.sizes, length, depth)
        return ModelDescription(self.config, self.sizes.source, self.sizes.target, tuple(self.notes), whole)

    def figures(self, length: int) -> dict[str, Figure]:
        """Return the figures that the model has: `masks` for a text of `length` tokens, and `schedule`.

        A learning rate that is not limited by `train.max_steps` is drawn for a number of updates that shows its warm-up
        and its decay.
        """
        model = self.config.build_for(small_sizes(self.sizes))
        masks = applied_masks(model.eval(), length) if any(True for _ in model.parameters()) else None
        figures: dict[str, Figure] = {} if masks is None else {"masks": masks}
        width = getattr(self.config, "width", None)
        if self.training is not None and width is not None:
            schedule = self.training.resolve(width).schedule
            assert schedule is not None  # `resolve` chooses one
            steps = self.training.max_steps or max(_DRAWN_STEPS, 5 * ceil(schedule.warmup))
            figures["schedule"] = schedule_curves({schedule.kind: schedule}, steps, width)
        return figures


def _origin_note(model: Source, overrides: Overrides) -> str:
    if isinstance(model, str | Path):
        return str(model)
    return f"settings {COMMAND_LINE if model is None and not isinstance(overrides, Mapping) else PYTHON}"


def _load_trained(folder: Path) -> _Subject:
    meta = read_meta(folder)
    warn_of_unfinished_run(folder, meta)
    stored = read_config(folder)
    config = parse_folder_model(stored, folder)
    kind = describe_kind(stored["model"], task_kind(stored))
    origin = f"trained for {meta.step:,} steps" if kind.has_updates else "estimated from counts"
    notes = [f"{folder}: {kind.noun}, {origin}"]
    if not kind.tokenizers:
        return _Subject(config, VocabularySizes(0, 0), notes)
    tokenizers = Tokenizers.load(folder)
    sizes = tokenizers.sizes
    return _Subject(config, sizes, [*notes, _vocabulary_note(sizes.source, sizes.target, tokenizers.shared, "")])


def _configure_untrained(
    task: TaskKind, model: Source, overrides: Overrides, sizes: tuple[int, ...], pairs: int | None
) -> _Subject:
    notes = [_origin_note(model, overrides)]
    keys = {"model"} if model is None else set(read_document(model).content)
    tokenizers, text, training = None, TextConfig(), None
    if model is None and len(sizes) == 2 and "text" in task.run.model_fields:
        overrides = all_overrides(["text.shared=false"], overrides)
    if keys & set(task.run.model_fields):
        given = keys | {str(each.key[0]) for each in all_overrides(overrides)}
        # the tasks of a recipe determine the heads of the model
        placeholders = [each for each in task.placeholders if not (each.startswith("tasks=") and "tasks" in given)]
        run: Any = load_settings(model, all_overrides(overrides, placeholders), task.run)
        started = load_start(run)
        config, text, tokenizers = started.run.model, getattr(started.run, "text", text), started.tokenizers
        training = getattr(started.run, "train", None)
    else:
        config = load_settings(model, _without_section(overrides), task.model)
        if len(sizes) == 2 and isinstance(config, ModelConfig) and "tie_embeddings" not in config.model_fields_set:
            config = ModelConfig.model_validate({**config.model_dump(exclude_unset=True), "tie_embeddings": False})
    kind = kind_of({"kind": config.kind})
    one_sided = len(kind.sides) == 1
    if one_sided and (len(sizes) > 1 or pairs):
        raise ConfigError(f"{kind.noun} has one vocabulary and no pairs: give --vocabulary N without --pairs")
    if isinstance(config, PresetSettings):
        config, preset_notes = _resolve_preset(config, pairs)
        notes += preset_notes
    if not kind.tokenizers:
        return _Subject(config, VocabularySizes(0, 0), notes, training)
    if tokenizers is not None:
        source, target, origin = tokenizers.source.size, tokenizers.target.size, "from train.start"
    elif sizes:
        source, target, origin = sizes[0], sizes[-1], "as given"
    else:
        subword = text.subword.with_size(pairs) if pairs else text.subword
        size = getattr(subword, "size", None)
        if size and ("subword" in text.model_fields_set or pairs is not None):
            source = target = size
            origin = "from text.subword; a small corpus yields fewer"
        else:
            source = target = DEFAULT_VOCABULARY
            origin = "assumed; to change this, set --vocabulary"
    if text.vectors is not None:
        source = text.vectors.width
        notes.append(f"source: vectors of {source:,} numbers; target vocabulary: {target:,} entries ({origin})")
    else:
        shared = one_sided or (text.shared and len(sizes) < 2)
        notes.append(_vocabulary_note(source, target, shared, f" ({origin})"))
    if training is not None and hasattr(config, "packs"):
        obstacle = packing_obstacle(config, training)
        packed = "packed on a GPU or in bfloat16 (data.batch.packed=auto)"
        padded = f"padded, on a GPU to few shapes (data.batch.few_shapes=auto), because {obstacle}"
        notes.append(f"batches: {packed if obstacle is None else padded}")
    return _Subject(config, VocabularySizes(source, target, text.vectors is not None), notes, training)


def _resolve_preset(config: PresetSettings, pairs: int | None) -> tuple[PresetSettings, list[str]]:
    """Return the config with its preset resolved for `pairs` pairs, or for a default size, and notes on the choice."""
    if config.preset is None:
        return config, []
    if config.preset != "auto":
        return config, [f"preset {config.preset}"]
    if config.size_unit == "tokens":
        config = config.resolve(DEFAULT_TOKENS)
        size = f"{DEFAULT_TOKENS:,} tokens of text (assumed; to use another preset, set model.preset)"
        return config, [f"preset auto is {config.preset} for {size}"]
    config = config.resolve(pairs or DEFAULT_PAIRS)
    origin = "from --pairs" if pairs else "assumed; to change this, set --pairs"
    return config, [f"preset auto is {config.preset} for a corpus of {pairs or DEFAULT_PAIRS:,} pairs ({origin})"]


def _without_section(overrides: Overrides) -> list[Override]:
    """Return the overrides with keys relative to the `model` section, such as `preset` for `model.preset`."""
    return [each._replace(key=each.key[1:]) if each.key[0] == "model" else each for each in all_overrides(overrides)]


def _vocabulary_note(source: int, target: int, shared: bool, origin: str) -> str:
    if shared:
        return f"one vocabulary of {source:,} entries{origin}"
    return f"vocabularies of {source:,} and {target:,} entries{origin}"
