"""`Reranker`: orders n-best lists by a weighted sum of features."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.base.files import atomic_write
from dragoman.base.settings.load import dump_settings, load_settings
from dragoman.checkpoint.folder import fingerprint
from dragoman.inference.translation.choice import ordered
from dragoman.inference.translation.reranking.config import RerankingConfig
from dragoman.inference.translation.reranking.features import Features
from dragoman.inference.translation.result import Translation
from dragoman.inference.translation.translator import Translator


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
        translator: Translator,
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
