"""`RerankingConfig`: the models that order n-best lists and their weights, as `dragoman tune` writes them."""

from pathlib import Path

from pydantic import Field

from dragoman.base.settings.config import Config


class ReverseConfig(Config):
    """A translation model of the reverse direction, whose feature is log p(source | translation).

    It is the channel model of the noisy-channel approach.
    """

    folder: Path = Field(
        description="Folder of a model that translates from the target language into the source language."
    )
    weight: float = Field(default=1.0, allow_inf_nan=False, description="Weight of this feature (no unit).")
    to: str | None = Field(default=None, description="The source language, for a model with several target languages.")
    tags: tuple[str, ...] = Field(default=(), description="Further tags to put before its input.")


class RerankingLanguageModelConfig(Config):
    """A language model of the target language with any vocabulary, whose feature is log p(translation)."""

    folder: Path = Field(description="Folder of a language model.")
    weight: float = Field(default=1.0, allow_inf_nan=False, description="Weight of this feature (no unit).")


class TunedConfig(Config):
    """Record of how the weights were tuned."""

    metric: str = Field(description="Metric, with sacreBLEU's signature.")
    sentences: int = Field(description="Number of sentences in the dev set.")
    before: float = Field(description="Score of the same n-best lists in the model's own order.")
    after: float = Field(
        description="Score with these weights on the dev set, where it was maximised; the gain on other text is "
        "smaller."
    )


class RerankingConfig(Config):
    """Score of a hypothesis: the weighted sum of its features (Yee et al. 2019; Ng et al. 2019), each in nats."""

    nbest: int = Field(default=20, ge=2, description="Number of hypotheses per text that are reranked.")
    model: float = Field(
        default=1.0, allow_inf_nan=False, description="Weight of the model's own log p(translation | source)."
    )
    length: float = Field(
        default=0.0,
        allow_inf_nan=False,
        description="Weight of the number of tokens; it counteracts the preference of the other features for short "
        "outputs.",
    )
    reverse: ReverseConfig | None = Field(default=None, description="Model of the reverse direction; null for none.")
    language_model: RerankingLanguageModelConfig | None = Field(
        default=None, description="Language model of the target language; null for none."
    )
    tuned: TunedConfig | None = Field(default=None, description="Record of how the weights were tuned, if they were.")

    def weights(self) -> dict[str, float]:
        """Return the weight of each feature by name, in the order of `Features`."""
        found = {"model": self.model, "length": self.length}
        if self.reverse is not None:
            found["reverse"] = self.reverse.weight
        if self.language_model is not None:
            found["language_model"] = self.language_model.weight
        return found

    def with_weights(self, weights: dict[str, float]) -> "RerankingConfig":
        """Return this config with other weights, in the format of `weights`."""
        changed: dict[str, object] = {name: weights[name] for name in ("model", "length")}
        if self.reverse is not None:
            changed["reverse"] = self.reverse.model_copy(update={"weight": weights["reverse"]})
        if self.language_model is not None:
            changed["language_model"] = self.language_model.model_copy(update={"weight": weights["language_model"]})
        return self.model_copy(update=changed)
