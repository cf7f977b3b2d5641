"""`PreferredEngine`: one engine for the rows that it can compute, another for the rest."""

from collections.abc import Iterator, Sequence

import numpy as np

from dragoman.base.errors import ConfigError
from dragoman.base.log import warn
from dragoman.decode.search import Hypothesis
from dragoman.inspect.attention import AttentionMap
from dragoman.models.interface import LengthLimits
from dragoman.translation.engine import AttentionEngine, Engine, Pair, Row


class PreferredEngine:
    """What `preferred` refuses, `otherwise` computes; each reason is told once."""

    def __init__(self, preferred: Engine, otherwise: Engine) -> None:
        self.preferred, self.otherwise = preferred, otherwise
        self._told: set[str] = set()

    @property
    def limits(self) -> LengthLimits:
        """Those of the engine that can do more."""
        return self.otherwise.limits

    def refusal(self, row: Row) -> str | None:
        """What both refuse."""
        return None if self.preferred.refusal(row) is None else self.otherwise.refusal(row)

    def hypotheses(self, rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        """As `Engine.hypotheses`."""
        places: dict[Engine, list[int]] = {}
        for place, row in enumerate(rows):
            reason = self.preferred.refusal(row)
            places.setdefault(self.preferred if reason is None else self.otherwise, []).append(place)
            if reason is not None and reason not in self._told:
                self._told.add(reason)
                warn(reason)
        for engine, its in places.items():
            for place, found in engine.hypotheses([rows[each] for each in its], batch_size):
                yield its[place], found

    def scores(self, pairs: Sequence[Pair], batch_size: int) -> list[float]:
        """As `Engine.scores`; those of the reference."""
        return self.otherwise.scores(pairs, batch_size)

    def attention(self, source: Sequence[int], target: Sequence[int]) -> list[AttentionMap]:
        """As `AttentionEngine.attention`. Raises ConfigError where the other engine cannot show it."""
        return self._attending().attention(source, target)

    def source_attention(
        self, pairs: Sequence[Pair], batch_size: int, layer: int | None = None, head: int | None = None
    ) -> list[np.ndarray]:
        """As `AttentionEngine.source_attention`. Raises ConfigError as above."""
        return self._attending().source_attention(pairs, batch_size, layer, head)

    def without_weights(self) -> list[str]:
        """As `AttentionEngine.without_weights`. Raises ConfigError as above."""
        return self._attending().without_weights()

    def _attending(self) -> AttentionEngine:
        if not isinstance(self.otherwise, AttentionEngine):
            raise ConfigError("this engine does not show what its model attends: load the model with PyTorch's")
        return self.otherwise
