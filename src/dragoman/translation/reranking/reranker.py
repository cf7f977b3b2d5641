"""`Reranker`: n-best lists ordered by a weighted sum of features."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.base.files import atomic_write
from dragoman.base.settings.load import dump_settings, load_settings
from dragoman.checkpoint.folder import fingerprint
from dragoman.translation.reranking.choice import ordered
from dragoman.translation.reranking.config import RerankingConfig
from dragoman.translation.reranking.features import Features
from dragoman.translation.result import Translation
from dragoman.translation.translator import Translator


class Reranker:
    """The noisy channel (Yee et al. 2019; Ng et al. 2019) and what else a config sums up."""

    def __init__(self, config: RerankingConfig, features: Features) -> None:
        """features: of this config."""
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
        """config: a file such as `dragoman tune` writes, or what it holds; translator: whose hypotheses are reranked.

        Raises ConfigError for a file that is none, and as `Features`.
        """
        read = config if isinstance(config, RerankingConfig) else read_reranking(Path(config))
        return cls(read, Features(read, translator.meta, device, threads, batch_size))

    def choose(self, sources: Sequence[str], found: Sequence[list[Translation]]) -> list[list[Translation]]:
        """As `Choice.choose`; the score is the weighted sum."""
        rows = [place for place, its in enumerate(found) if len(its) > 1]
        features = self._features.of([sources[place] for place in rows], [found[place] for place in rows])
        chosen = list(found)
        for place, values in zip(rows, features, strict=True):
            chosen[place] = ordered(found[place], (values @ self._weights).tolist())
        return chosen

    def settings(self) -> dict[str, Any]:
        """As `Choice.settings`."""
        named = (self.config.reverse, self.config.language_model)
        folders = [each.folder for each in named if each is not None]
        content = self.config.model_dump(mode="json", exclude={"tuned"})
        return {**content, "folders": [fingerprint(folder) for folder in folders]}


def read_reranking(path: Path) -> RerankingConfig:
    """Raises ConfigError for a file that is missing, or a key that it may not have, by name."""
    return load_settings(path, (), RerankingConfig)


def write_reranking(path: Path, config: RerankingConfig) -> None:
    """As YAML that `read_reranking` reads."""
    atomic_write(path, dump_settings(config))
