"""`Reranker`: orders n-best lists by a weighted sum of features, as its `RerankingConfig` says."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dragoman.base.errors import ConfigError
from dragoman.base.files import atomic_write
from dragoman.base.settings.config import Config
from dragoman.base.settings.load import dump_settings, load_settings
from dragoman.checkpoint.folder import fingerprint
from dragoman.checkpoint.meta import Meta
from dragoman.checkpoint.systems import NEURAL
from dragoman.inference.abilities import SupportsLines
from dragoman.inference.generation.language_model import LanguageModel
from dragoman.inference.load import translator_of
from dragoman.inference.translation.reranking.pair_scores import PairScorer, pair_scores
from dragoman.inference.translation.result import Translation, ordered


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


class Features:
    """Computes features: model, log p(y | x); length, tokens of y; reverse, log p(x | y); language_model, log p(y).

    Each log-probability includes the end of sentence. names: the features of the config, in column order.
    """

    def __init__(
        self,
        config: RerankingConfig,
        model: Meta,
        device: str | None = None,
        threads: int | None = None,
        batch_size: int = 64,
    ) -> None:
        """model: metadata of the model that generates the hypotheses.

        Raises ModelError for a path that is not a model folder, ConfigError for a reverse model of another direction.
        """
        self._batch_size = batch_size
        self.names = tuple(config.weights())
        self._reverse: PairScorer | None = None
        self._language_model = None
        self._config = config
        if config.reverse is not None:
            folder = config.reverse.folder
            loaded = translator_of(  # the neural system, because a phrase-based model scores no pairs
                folder, device, needs=PairScorer, precision=None, threads=threads, system=NEURAL
            )
            self._reverse = cast("PairScorer", loaded)
            check_direction(config.reverse, self._reverse.meta, model)
            self._reverse.source_tags.of(config.reverse.to, config.reverse.tags)  # raises for unknown tags
        if config.language_model is not None:
            self._language_model = LanguageModel.load(config.language_model.folder, device, "score")

    def of(self, sources: Sequence[str], found: Sequence[Sequence[Translation]]) -> list[NDArray[np.float64]]:
        """Return the features (N, F) of each text's N hypotheses. Hypotheses with the same text are scored once."""
        pairs = [(source, each.text) for source, hypotheses in zip(sources, found, strict=True) for each in hypotheses]
        columns = {
            "model": [each.log_probability for hypotheses in found for each in hypotheses],
            "length": [float(len(each.ids)) for hypotheses in found for each in hypotheses],
        }
        if self._reverse is not None:
            assert self._config.reverse is not None
            columns["reverse"] = pair_scores(
                self._reverse,
                [translation for _, translation in pairs],
                [source for source, _ in pairs],
                self._batch_size,
                to=self._config.reverse.to,
                tags=self._config.reverse.tags,
            )
        if self._language_model is not None:
            texts = list(dict.fromkeys(text for _, text in pairs))
            scores = self._language_model.score(texts, batch_size=self._batch_size)
            fluency = {text: score.log_probability for text, score in zip(texts, scores, strict=True)}
            columns["language_model"] = [fluency[text] for _, text in pairs]
        values = np.array([columns[name] for name in self.names], np.float64).T.reshape(len(pairs), len(self.names))
        ends = np.cumsum([len(hypotheses) for hypotheses in found])
        return np.split(values, ends[:-1]) if len(found) else []


def check_direction(config: ReverseConfig, reverse: Meta, model: Meta) -> None:
    """Raise ConfigError if the metadata of the reverse model contradict the reverse direction of `model`."""
    backward = config.to or reverse.target_language
    for preposition, other, own in (
        ("from", reverse.source_language, None if model.target_languages else model.target_language),
        ("into", backward, model.source_language),
    ):
        if other is not None and own is not None and other != own:
            raise ConfigError(
                f"the reverse model {config.folder} translates {preposition} {other}, but translations from "
                f"{model.source_language} into {model.target_language} need a model from {model.target_language} "
                f"into {model.source_language}"
            )


def flat(found: Sequence[Sequence[Translation]]) -> list[Translation]:
    """Return all hypotheses in one list, text by text."""
    return list(chain.from_iterable(found))


class Reranker:
    """Scores hypotheses by a noisy-channel model (Yee et al. 2019; Ng et al. 2019) and further features of a config."""

    def __init__(self, config: RerankingConfig, features: Features) -> None:
        """features: the features of `config`."""
        self.config = config
        self._features, self._weights = features, np.array(list(config.weights().values()))

    @classmethod
    def load(
        cls,
        config: "str | Path | RerankingConfig",
        translator: SupportsLines,
        device: str | None = None,
        threads: int | None = None,
        batch_size: int = 64,
    ) -> "Reranker":
        """Load the models of a config.

        config: a file written by `dragoman tune`, or its content. translator: generates the hypotheses. Raises
        ConfigError for an invalid file, and the same errors as `Features`.
        """
        read = config if isinstance(config, RerankingConfig) else read_reranking(Path(config))
        return cls(read, Features(read, translator.meta, device, threads, batch_size))

    def choose(self, sources: Sequence[str], found: Sequence[list[Translation]]) -> list[list[Translation]]:
        """See `Choice.choose`. The score is the weighted sum of features."""
        rows = [row for row, its in enumerate(found) if len(its) > 1]
        features = self._features.of([sources[row] for row in rows], [found[row] for row in rows])
        chosen = list(found)
        for row, values in zip(rows, features, strict=True):
            chosen[row] = ordered(found[row], (values @ self._weights).tolist())
        return chosen

    def settings(self) -> dict[str, Any]:
        """See `Choice.settings`."""
        named = (self.config.reverse, self.config.language_model)
        folders = [each.folder for each in named if each is not None]
        content = self.config.model_dump(mode="json", exclude={"tuned"})
        return {**content, "folders": [fingerprint(folder) for folder in folders]}


def read_reranking(path: Path) -> RerankingConfig:
    """Read a config from YAML. Raises ConfigError for a missing file or an unknown key."""
    return load_settings(path, (), RerankingConfig)


def write_reranking(path: Path, config: RerankingConfig) -> None:
    """Write a config as YAML for `read_reranking`."""
    atomic_write(path, dump_settings(config))
