"""`Features`: the features of hypotheses for reranking, computed by the models of a config."""

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import ConfigError
from dragoman.checkpoint.meta import Meta
from dragoman.inference.generation.language_model import LanguageModel
from dragoman.inference.translation.reranking.config import RerankingConfig, ReverseConfig
from dragoman.inference.translation.result import Translation
from dragoman.inference.translation.translator import Translator
from dragoman.models.interface import first_exceeded

UNREADABLE = -1e6
"""Log-probability (nats) assigned to pairs that are too long for the reverse model, so that they are ranked last."""


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
        self._reverse, self._language_model = None, None
        self._config = config
        if config.reverse is not None:
            self._reverse = Translator.load(config.reverse.folder, device, precision=None, threads=threads)
            check_direction(config.reverse, self._reverse.meta, model)
            self._tags = self._reverse.source_tags.of(config.reverse.to, config.reverse.tags)
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
            distinct = list(dict.fromkeys(pairs))
            reverse_scores = dict(zip(distinct, self._channel(distinct), strict=True))
            columns["reverse"] = [reverse_scores[pair] for pair in pairs]
        if self._language_model is not None:
            texts = list(dict.fromkeys(text for _, text in pairs))
            scores = self._language_model.score(texts, batch_size=self._batch_size)
            fluency = {text: score.log_probability for text, score in zip(texts, scores, strict=True)}
            columns["language_model"] = [fluency[text] for _, text in pairs]
        values = np.array([columns[name] for name in self.names], np.float64).T.reshape(len(pairs), len(self.names))
        ends = np.cumsum([len(hypotheses) for hypotheses in found])
        return np.split(values, ends[:-1]) if len(found) else []

    def _channel(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return log p(source | translation) of each pair."""
        reverse, config = self._reverse, self._config.reverse
        assert reverse is not None
        assert config is not None
        translations = reverse.tokenizers.source.encode_batch([translation for _, translation in pairs])
        sources = reverse.tokenizers.target.encode_batch([source for source, _ in pairs])
        limits, tags = reverse.engine.limits, len(self._tags)
        lengths = zip(translations, sources, strict=True)
        fits = [
            first_exceeded(limits, tags + len(translation_ids), len(source_ids)) is None
            for translation_ids, source_ids in lengths
        ]
        readable = [pair for pair, each in zip(pairs, fits, strict=True) if each]
        scores = reverse.score(
            [translation for _, translation in readable],
            [source for source, _ in readable],
            self._batch_size,
            to=config.to,
            tags=config.tags,
        )
        values = (each.log_probability for each in scores)
        return [next(values) if each else UNREADABLE for each in fits]


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
