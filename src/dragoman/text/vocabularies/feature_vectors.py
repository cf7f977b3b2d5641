"""Sources that consist of feature vectors instead of text. Each line is a sequence of vectors in JSON."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dragoman.base.errors import ConfigError, LineError, ModelError
from dragoman.base.settings.config import Config
from dragoman.text.tokenizer import Tokenizer

MAX_WIDTH = 1 << 20


class VectorsConfig(Config):
    """Each source line is a JSON list of vectors, such as image regions, audio frames or log events (decks 001, 002).

    A vector counts as one token for length limits such as data.cleaning.max_tokens. All encoders accept feature
    vectors. YAML: `text: {vectors: {width: 40}}`.
    """

    width: int = Field(
        ge=1, le=MAX_WIDTH, description="Number of components per vector, the same for all vectors of the corpus."
    )


class VectorError(LineError):
    """Error for a line that is not a sequence of vectors."""


class VectorSequences(Tokenizer):
    """Source tokenizer for feature vectors. `encode` returns the vectors of a line, (S, width) float32."""

    kind: ClassVar[str] = "vectors"
    normalises: ClassVar[bool] = True

    def __init__(self, width: int) -> None:
        super().__init__([], [])
        self.width = width

    @property
    def size(self) -> int:
        """Number of components per vector."""
        return self.width

    def _encode(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:  # type: ignore[override]
        """Return the vectors of each line, (S, width) float32. Raises VectorError for an invalid line."""
        return [self._parse(text, index) for index, text in enumerate(texts)]

    def _parse(self, text: str, index: int) -> NDArray[np.float32]:
        try:
            rows = json.loads(text, parse_constant=_reject_constant)
        except (ValueError, RecursionError) as error:
            reason = f"not valid JSON ({error}): expected a list of vectors, such as [[0.5, 1], [2, 3]]"
            raise VectorError(index, reason) from None
        if not isinstance(rows, list) or not rows or not all(isinstance(row, list) for row in rows):
            raise VectorError(index, "not a list of vectors: expected one or more vectors, such as [[0.5, 1], [2, 3]]")
        for number, row in enumerate(rows, start=1):
            if len(row) != self.width:
                raise VectorError(
                    index, f"vector {number} has {len(row)} numbers, but text.vectors.width is {self.width}"
                )
        values = np.asarray(rows) if all(not isinstance(value, list) for row in rows for value in row) else None
        if values is None or values.dtype.kind not in "iuf":
            raise VectorError(index, "a vector contains values that are not numbers")
        with np.errstate(over="ignore"):
            vectors = values.astype(np.float32)
        if not np.isfinite(vectors).all():
            raise VectorError(index, "a number is too large for 32 bits")
        return vectors

    def decode(self, ids: Iterable[Any], unknown: Sequence[str] = ()) -> str:
        """Return JSON that `encode` converts back to the same vectors."""
        return json.dumps(np.asarray(ids, dtype=np.float32).tolist())

    def pieces(self, ids: Iterable[Any]) -> list[str]:
        """Return the positions of the vectors, counted from 1, because vectors have no names."""
        return [str(number) for number, _ in enumerate(ids, start=1)]

    def _words(self, text: str) -> tuple[list[int], list[str]]:
        """Return one empty word per vector, because there are no unknown words."""
        count = len(self.encode(text))
        return list(range(count)), [""] * count

    def with_dropout(self, dropout: float) -> "VectorSequences":
        """Return self, because dropout applies only to the target."""
        return self

    def with_tags(self, tags: Sequence[str]) -> "VectorSequences":
        """Return self. Raises ConfigError if tags are given, because vectors have no vocabulary."""
        if tags:
            raise ConfigError(
                f"a source of feature vectors does not support tags ({', '.join(tags)}): remove text.tags, tags and "
                "target_language of the corpora"
            )
        return self

    def tag_ids(self, tags: Sequence[str]) -> list[int]:
        """Return an empty list. Raises ConfigError if tags are given."""
        self.with_tags(tags)
        return []

    def _document(self) -> str:
        """Return the JSON document that `read` expects."""
        return json.dumps({"kind": self.kind, "width": self.width})

    @classmethod
    def read(cls, document: dict[str, Any], path: Path) -> Self:
        """Create a tokenizer from a parsed document. Raises ModelError if the width is invalid."""
        width = document.get("width")
        if not isinstance(width, int) or isinstance(width, bool) or not 1 <= width <= MAX_WIDTH:
            raise ModelError(f"{path} is damaged: its width is {width!r}. Restore it from a copy")
        return cls(width)


def _reject_constant(constant: str) -> float:
    raise ValueError(f"{constant} is not a number")
