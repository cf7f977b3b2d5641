"""`RerankingConfig`: which models order n-best lists, and how much each counts; what `dragoman tune` writes."""

from pathlib import Path

from pydantic import Field

from dragoman.base.settings.config import Config


class ReverseConfig(Config):
    """A translation model of the other direction: log p(source | translation), the channel of the noisy channel."""

    folder: Path = Field(description="A model folder that translates from the target language into the source's.")
    weight: float = Field(default=1.0, allow_inf_nan=False, description="How much it counts (no unit).")
    to: str | None = Field(default=None, description="The source language, for a model that writes several.")
    tags: tuple[str, ...] = Field(default=(), description="Other tags that it reads before a text.")


class RerankingLanguageModelConfig(Config):
    """A language model of the target language, with whatever vocabulary: log p(translation)."""

    folder: Path = Field(description="A language model's folder.")
    weight: float = Field(default=1.0, allow_inf_nan=False, description="How much it counts (no unit).")


class TunedConfig(Config):
    """What weights were tuned on; for the record."""

    metric: str = Field(description="The metric, with sacrebleu's signature.")
    sentences: int = Field(description="Sentences of the dev set.")
    before: float = Field(description="Its score with the model's own order of the same lists.")
    after: float = Field(description="Its score with these weights. It was maximised: other text will gain less.")


class RerankingConfig(Config):
    """Score of a hypothesis: the weighted sum of its features (Yee et al. 2019; Ng et al. 2019), each in nats."""

    nbest: int = Field(default=20, ge=2, description="Hypotheses of a text that are ordered anew.")
    model: float = Field(
        default=1.0, allow_inf_nan=False, description="Weight of the model's own log p(translation | source)."
    )
    length: float = Field(
        default=0.0, allow_inf_nan=False, description="Weight of the number of tokens, which all else is against."
    )
    reverse: ReverseConfig | None = Field(default=None, description="The model of the other direction; null: none.")
    language_model: RerankingLanguageModelConfig | None = Field(
        default=None, description="A language model of the target language; null: none."
    )
    tuned: TunedConfig | None = Field(default=None, description="What the weights were tuned on, if they were.")

    def weights(self) -> dict[str, float]:
        """Of each feature, by its name, in the order of `Features`."""
        found = {"model": self.model, "length": self.length}
        if self.reverse is not None:
            found["reverse"] = self.reverse.weight
        if self.language_model is not None:
            found["language_model"] = self.language_model.weight
        return found

    def with_weights(self, weights: dict[str, float]) -> "RerankingConfig":
        """The same features with these weights, as `weights` gives them."""
        changed: dict[str, object] = {name: weights[name] for name in ("model", "length")}
        if self.reverse is not None:
            changed["reverse"] = self.reverse.model_copy(update={"weight": weights["reverse"]})
        if self.language_model is not None:
            changed["language_model"] = self.language_model.model_copy(update={"weight": weights["language_model"]})
        return self.model_copy(update=changed)
