"""`DenoisingRun`, the settings of a run that pre-trains an encoder–decoder on corrupted text."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field

from dragoman.data.noise.spans import SpanCorruptionConfig
from dragoman.data.noise.union import NoiseConfig
from dragoman.decode.search import SearchConfig
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.tasks.language_model.config import (
    LanguageModelObjectiveConfig,
    TextCrossEntropyConfig,
    TextDataConfig,
)
from dragoman.text.tokenizers import TextConfig
from dragoman.training.config import LoopConfig
from dragoman.training.task import RunConfig, Task

_BLOCK = 128


class DenoisingDataConfig(TextDataConfig):
    """Corpora, their batching, and noise."""

    block: int = Field(
        _BLOCK,
        ge=8,
        description="Maximum length of a text in tokens before it is corrupted. Longer documents are divided into "
        "several blocks, which do not share context.",
    )
    noise: NoiseConfig = Field(
        SpanCorruptionConfig(), description="Noise that corrupts the texts, differently in every epoch."
    )
    vocabulary_of: Path | None = Field(
        None,
        description="Model folder whose target vocabulary is used. null: a vocabulary is learned from the training "
        "text, or that of train.start is used.",
    )


class DenoisingTask(Task):
    """Restoring corrupted text by an encoder–decoder (Raffel et al. 2020; Lewis et al. 2020).

    YAML: `task: {kind: denoising}`.
    """

    kind: Literal["denoising"] = "denoising"


class DenoisingLoopConfig(LoopConfig):
    """The training loop: limits, intervals, optimisation. At least one limit, or `patience`, ends the run."""

    metric: Literal["loss"] = Field(
        "loss", description="Metric for selecting the best checkpoint on `valid`; lower loss is better."
    )
    objective: LanguageModelObjectiveConfig = Field(
        TextCrossEntropyConfig(), description="Training objective, computed at the tokens of the targets."
    )


class DenoisingRun(RunConfig):
    """A run that pre-trains an encoder–decoder: the top level of a recipe with `task: {kind: denoising}`."""

    task: DenoisingTask = Field(description="Task to learn.")
    data: DenoisingDataConfig = Field(description="Corpora, cleaning, noise, batches.")
    text: TextConfig = Field(TextConfig(), description="Subwords and the vocabulary.")
    model: ModelConfig = Field(ModelConfig(), description="Model architecture.")
    train: DenoisingLoopConfig = Field(DenoisingLoopConfig(), description="Training loop.")
    search: SearchConfig = Field(SearchConfig(), description="Default search settings of the trained model.")

    def with_stored_choices(self, stored: Self) -> Self:
        """Return the settings, with an automatic preset and batch size copied from the stored run."""
        settings = super().with_stored_choices(stored)
        return settings.model_copy(update={"model": self.model.with_stored_choices(stored.model)})
