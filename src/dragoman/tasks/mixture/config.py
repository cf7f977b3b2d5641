"""`MixtureConfig`: what a run learns beside its own task, in the same model."""

from typing import Literal

from pydantic import Field, model_validator

from dragoman.base.settings.config import Config
from dragoman.tasks.language_model.config import LanguageModelObjectiveConfig, TextDataConfig


class LanguageModelBesideConfig(Config):
    """Language modelling of the target language's text by a translator's decoder, which reads no source meanwhile.

    Attention over the source adds nothing then. Domhan & Hieber 2017, "Using target-side monolingual data for neural
    machine translation through multi-task learning". The vocabulary is the translator's.
    """

    kind: Literal["language_model"] = "language_model"
    body: Literal["decoder"] = Field("decoder", description="the part of the model that it shares")
    weight: float = Field(
        1.0, ge=0, description="λ, what its mean loss a token counts for where that of the run's own task counts for 1"
    )
    data: TextDataConfig = Field(description="plain text of the target language")
    objective: LanguageModelObjectiveConfig = Field(LanguageModelObjectiveConfig(), description="the loss")


class MixtureConfig(Config):
    """Several tasks in one run: Σ λ_t L_t, L_t being the mean loss of task t in an update (deck 001, multi-task).

    Every update has as many batches of each task. An epoch, validation's decision and the model folder are those of the
    run's own task. YAML: `beside: {tasks: {german: {kind: language_model, data: {train: {text: news.de}, valid: …}}}}`.
    """

    tasks: dict[str, LanguageModelBesideConfig] = Field(min_length=1, description="the other tasks, by their names")
    temperature: float | None = Field(
        None,
        gt=0,
        description="instead of weights: λ_t = (n_t / n)^(1/temperature) of a task with n_t target tokens beside n of "
        "the run's own",
    )

    @model_validator(mode="after")
    def _weights_or_a_temperature(self) -> "MixtureConfig":
        weighted = [name for name, task in self.tasks.items() if "weight" in task.model_fields_set]
        if self.temperature is not None and weighted:
            raise ValueError(f"temperature stands instead of weights: leave out the weight of {weighted[0]}")
        return self
