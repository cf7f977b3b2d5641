"""`PreferredEngine`: a fast engine for the rows that it can compute, the reference engine for everything else."""

from collections.abc import Iterator, Sequence

import numpy as np

from dragoman.base.log import warn
from dragoman.decode.search import Hypothesis
from dragoman.inspect.attention import AttentionMap
from dragoman.models.interface import LengthLimits
from dragoman.translation.engine import AttentionEngine, Engine, Pair, Row


class PreferredEngine:
    """Uses `preferred` for the rows that it accepts, and `reference` for other rows, scores and attention.

    Warns once per reason for which `preferred` refuses a row.
    """

    def __init__(self, preferred: Engine, reference: AttentionEngine) -> None:
        """preferred, reference: engines of the same model."""
        self.preferred, self._reference = preferred, reference
        self._warned: set[str] = set()

    @property
    def limits(self) -> LengthLimits:
        """The limits of the reference, which are wider."""
        return self._reference.limits

    def refusal(self, row: Row) -> str | None:
        """Return a reason only if both engines refuse the row."""
        return None if self.preferred.refusal(row) is None else self._reference.refusal(row)

    def hypotheses(self, rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        """See `Engine.hypotheses`."""
        places: dict[Engine, list[int]] = {}
        for place, row in enumerate(rows):
            reason = self.preferred.refusal(row)
            places.setdefault(self.preferred if reason is None else self._reference, []).append(place)
            if reason is not None and reason not in self._warned:
                self._warned.add(reason)
                warn(reason)
        for engine, own in places.items():
            for index, hypotheses in engine.hypotheses([rows[place] for place in own], batch_size):
                yield own[index], hypotheses

    def scores(self, pairs: Sequence[Pair], batch_size: int) -> list[float]:
        """See `Engine.scores`; computed by the reference."""
        return self._reference.scores(pairs, batch_size)

    def attention(self, source: Sequence[int], target: Sequence[int]) -> list[AttentionMap]:
        """See `AttentionEngine.attention`; computed by the reference."""
        return self._reference.attention(source, target)

    def source_attention(
        self, pairs: Sequence[Pair], batch_size: int, layer: int | None = None, head: int | None = None
    ) -> list[np.ndarray]:
        """See `AttentionEngine.source_attention`; computed by the reference."""
        return self._reference.source_attention(pairs, batch_size, layer, head)

    def without_weights(self) -> list[str]:
        """See `AttentionEngine.without_weights`; answered by the reference."""
        return self._reference.without_weights()
