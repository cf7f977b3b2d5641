"""`CorporaConfig`: the common base of the section `data` of every task that learns from corpora."""

from collections.abc import Mapping
from typing import Any

from pydantic import model_validator

from dragoman.base.settings.config import Config


class CorporaConfig(Config):
    """The base of a section `data` with fields `train` and `valid`, each one corpus or several, and `temperature`."""

    @property
    def corpora(self) -> tuple[Any, ...]:
        """The corpora of `train` as a tuple."""
        return self._several("train")

    @property
    def valid_sets(self) -> tuple[Any, ...]:
        """The validation sets of `valid` as a tuple."""
        return self._several("valid")

    @property
    def training(self) -> str:
        """The name of `train` in messages."""
        return ", ".join(map(str, self.corpora))

    @property
    def validation(self) -> str:
        """The name of `valid` in messages."""
        return ", ".join(map(str, self.valid_sets))

    def card(self) -> Mapping[str, Any]:
        """Return languages and licence as fields of `Meta`."""
        raise NotImplementedError

    def _several(self, section: str) -> tuple[Any, ...]:
        value = getattr(self, section)
        return value if isinstance(value, tuple) else (value,)

    @model_validator(mode="after")
    def _weights_make_sense(self) -> "CorporaConfig":
        if any(corpus.weight != 1 for corpus in self.valid_sets):
            raise ValueError("data.valid is read as a whole: leave out its weight")
        weighted = [str(corpus) for corpus in self.corpora if corpus.weight != 1]
        if getattr(self, "temperature", None) is not None and weighted:
            raise ValueError(f"data.temperature replaces weights: leave out the weight of {weighted[0]}")
        return self
